// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

namespace gpuq::cli {

/// `gpuq usage --targets`: returns 0 if no target of the policy's queues is missed, else 1.
Result<int> usage_targets(Invocation& invocation);

} // namespace gpuq::cli
