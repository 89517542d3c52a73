// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

namespace gpuq::cli {

/// `gpuq policy simulate`.
Result<int> policy_simulate(Invocation& invocation);

} // namespace gpuq::cli
