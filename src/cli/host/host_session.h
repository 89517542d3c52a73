// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/host/host_call.h"

namespace gpuq::cli {

/// `gpuq --host NAME VERB`: runs the verb on the host as if it ran here, and returns its exit
/// status. `unreachable`, `denied` and `not_found` if it can't be started on the host.
Result<int> run_on_host(const HostCall& call, Services& services);

} // namespace gpuq::cli
