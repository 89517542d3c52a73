// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

namespace gpuq::cli {

/// `gpuq policy tune`.
Result<int> policy_tune(Invocation& invocation);

} // namespace gpuq::cli
