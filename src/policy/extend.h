// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <cstdint>
#include <optional>
#include <string>

/// The rules of `gpuq extend` for running jobs (`extend:` of a queue). Slurm lets only its
/// operators raise the limit of a running job; the generated script lets them do so up to
/// longest_extended(), and gpuq enforces the rest. Pure.
namespace gpuq::policy {

/// Numbers of GPUs times the remaining time limits of the running jobs of a queue, in minutes, with
/// the extension.
struct GpuTimeAhead {
    std::int64_t user = 0;    ///< of the job's owner
    std::int64_t account = 0; ///< of the job's account
    std::int64_t all = 0;
};

struct ExtendRequest {
    std::string qos;       ///< of the job
    std::string partition; ///< in which it runs
    minutes walltime{0};   ///< the limit that it has
    minutes more{0};
    std::string waiting;  ///< a job of another user that waits for its nodes; empty: none
    GpuTimeAhead ahead{}; ///< only if limits_gpu_time_ahead()
    bool saved = false;   ///< its owner's gpuq has seen a checkpoint of the run
};

/// The rule for the job's queue; null: none, or no policy of gpuq's.
const ExtendRule* extend_rule(const Policy& policy, const std::string& qos);

/// `while no other user waits for its nodes or after its program has saved a checkpoint`.
std::string conditions_text(const ExtendConditions& conditions);

/// Whether the rule depends on the jobs that wait. `saved`: as in ExtendRequest.
bool depends_on_waiting(const ExtendRule& rule, bool saved);

/// Whether the job's queue limits the GPU-hours ahead, which Slurm checks only when a job starts.
bool limits_gpu_time_ahead(const Policy& policy, const std::string& qos);

/// The reason, with the position of the rule, why the policy does not give a running job more time;
/// nullopt if it does.
std::optional<std::string> refusal_of(const Policy& policy, const ExtendRequest& request);

/// The longest limit that a job of the queue can be extended to.
minutes longest_extended(const Queue& queue);

} // namespace gpuq::policy
