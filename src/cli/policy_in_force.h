// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "policy/submission.h"
#include "runs/idle.h"
#include "runs/plan.h"

#include <map>
#include <optional>
#include <string>

namespace gpuq::cli {

/// The copy that `gpuq policy apply` keeps of the policy in force; nothing when there is none, or
/// an older gpuq has applied what is no sound policy any more.
Result<std::optional<policy::Policy>> applied_policy(Admin& admin);

/// The policy that `gpuq policy apply` has put in force, as far as it can be read here: the copy
/// beside slurm.conf, else the file that load_policy (policy_file.h) finds. Nothing when there is
/// none, or none that is sound: what Slurm enforces does not depend on it.
std::optional<policy::Policy> policy_in_force(Doors& doors);

/// What it says of the chains of each of its queues.
std::map<std::string, ChainLimits> chains_of(const policy::Policy& policy);

/// Which of its queues take the runs of this user, charged to this account if they have said so.
std::map<std::string, Surroundings::Entry> entry_of(const policy::Policy& policy,
                                                    const std::string& user,
                                                    const std::optional<std::string>& account);

/// The GPUs of each of its queues. One with a pool that does not say what it has is left out.
QueueGpus gpus_of(const policy::Policy& policy);

/// What the policy in force says, for the plan of a run charged to `account`; nothing when it rules
/// none of `partitions`. Gives what becomes of GPUs that it leaves idle.
IdleRules take_policy(Surroundings& here, Doors& doors, const std::vector<Partition>& partitions,
                      const std::optional<std::string>& account);

/// What the policy in force, where it can be read, says to a request: in words as `gpuq policy
/// explain` has them, but for where the user stands now.
struct PolicyAnswer {
    bool refuses = false; ///< surely: not where it depends on an account that nobody has named
    std::vector<std::string> lines;
};
std::optional<PolicyAnswer> policy_answer(Doors& doors, const Request& request,
                                          const std::string& user);

/// What becomes of idle GPUs in the partitions of each of its queues that say so.
IdleRules idle_of(const policy::Policy& policy);

/// A run's request as the policy sees it.
policy::Submission submission_of(const Request& request, const std::string& user);

} // namespace gpuq::cli
