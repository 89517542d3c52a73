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
/// job has got. Whether the run has saved (`if: save_known`) only its owner can tell, whose files
/// the helper cannot read: it is taken from no other caller, and the rule limits the time all the
/// same.
namespace gpuq::cli {

struct Extension {
    std::chrono::minutes before{0};
    std::chrono::minutes walltime{0};
};

/// Extends a running job of `caller`, or of another user if the help desk permits it, with the
/// rights that this process has. `saved`: the caller states that the run has saved a checkpoint.
/// Four RPCs. `denied` with the rule; `missing`; `unreachable`.
Result<Extension> extend_by_rule(Services& services, const policy::Policy& policy,
                                 const Caller& caller, JobId id, std::chrono::minutes more,
                                 bool saved);

} // namespace gpuq::cli
