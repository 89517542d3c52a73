// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/policy_ops/caller.h"
#include "core/ids.h"
#include "policy/policy.h"

#include <chrono>
#include <string>

/// More time for a running job by the rule `extend` of its queue. Slurm lets only its operators
/// raise the limit, so that an account which is one of them (`helper` in the policy) does it for
/// the job's owner, who calls it by sudo. No count is kept: the limit itself shows how much a
/// job has got.
namespace gpuq::cli {

struct Extension {
    std::chrono::minutes before{0};
    std::chrono::minutes walltime{0};
};

/// Extends a running job of `caller`, or of another user if the help desk permits it, with the
/// rights that this process has. Four RPCs. `denied` with the rule; `missing`; `unreachable`.
Result<Extension> extend_by_rule(Services& services, const policy::Policy& policy,
                                 const Caller& caller, JobId id, std::chrono::minutes more);

} // namespace gpuq::cli
