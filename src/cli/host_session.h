// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/host_call.h"
#include "cli/verb.h"

namespace gpuq::cli {

/// `gpuq --host NAME VERB`: the verb runs there, as if it ran here. Its exit status; `unreachable`,
/// `denied` and `not_found` for what stands between.
Result<int> run_on_host(const HostCall& call, Doors& doors);

} // namespace gpuq::cli
