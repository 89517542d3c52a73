// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq usage --targets`: 0 when no target of the policy's queues is missed, 1 when one is.
Result<int> usage_targets(Invocation& invocation);

} // namespace gpuq::cli
