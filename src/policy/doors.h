// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <string>
#include <vector>

namespace gpuq::policy {

/// One partition of Slurm: a queue's way into one pool. A queue has several because Slurm chooses
/// among the partitions of a job by their PriorityTier, and has limits, time of grace and
/// preemption by partition (sched_config, slurm.conf(5)).
struct Door {
    enum class Kind {
        own,      ///< within the soft limits
        more,     ///< beyond the soft limits: behind everybody who is within theirs
        overflow, ///< in pools that belong to other queues
    };
    std::string partition;
    const Pool* pool = nullptr; ///< of the policy
    Kind kind = Kind::own;
    int tier = 0;
    bool guest = false; ///< has to leave when the pool's owner comes
};

/// The doors of a queue, the preferred ones first. The first carries the queue's own name, the
/// others its name with the pool's, and `-more` for what is beyond the soft limits. Pools that are
/// not there are left out: check.h tells of them.
///
/// Tiers: the owner of a pool 60, else 40, 39, ... in the order of `pools`; beyond the soft limits
/// 20, 19, ...; overflow 10, 9, ... On every node, then: owner, then queues within their limits,
/// then those beyond, then overflow; and every queue fills its pools in the order of the file.
std::vector<Door> doors_of(const Policy& policy, const Queue& queue);

/// The name of the QOS that carries a queue's hard limits, and is the key to its partitions.
std::string qos_of(const Queue& queue);
/// Of the one that carries its soft limit.
std::string soft_qos_of(const Queue& queue);

/// The order of pools and of overflow matters up to so many.
constexpr std::size_t k_most_pools = 10;

} // namespace gpuq::policy
