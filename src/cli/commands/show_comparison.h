// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

namespace gpuq::cli {

/// `gpuq show --compare`.
Result<int> show_comparison(Invocation& invocation);

} // namespace gpuq::cli
