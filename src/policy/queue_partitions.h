// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <string>
#include <vector>

namespace gpuq::policy {

/// A Slurm partition that gives a queue access to one pool. A queue has several partitions because
/// Slurm chooses among a job's partitions by their PriorityTier, and has limits, grace time and
/// preemption per partition (sched_config, slurm.conf(5)).
struct QueuePartition {
    enum class Kind {
        own,      ///< for jobs within the soft limits
        more,     ///< for jobs beyond the soft limits: after all jobs within them
        overflow, ///< in pools of other queues
    };
    std::string partition;
    const Pool* pool = nullptr; ///< in the policy
    Kind kind = Kind::own;
    int tier = 0;
    bool guest = false;  ///< jobs must leave when the pool's owner needs the nodes
    bool closed = false; ///< no job starts in it (policy/calendar.h)
};

/// The partitions of a queue, the preferred ones first. The first has the queue's own name, the
/// others the names of queue and pool, followed by `-more` for jobs beyond the soft limits.
/// Undefined pools are left out: check.h reports them.
///
/// Tiers: the owner of a pool 60, else 40, 39, ... in the order of `pools`; a queue for sweeps 30,
/// 29, ...; beyond the soft limits 20, 19, ...; overflow 10, 9, ... So the order on every node is:
/// the owner, queues within their limits, sweeps, those beyond, overflow; and every queue fills its
/// pools in the order of the file.
std::vector<QueuePartition> partitions_of(const Policy& policy, const Queue& queue);

/// The name of the QOS that has a queue's hard limits, and is required for its partitions.
std::string qos_of(const Queue& queue);
/// The name of the QOS that has its soft limits.
std::string soft_qos_of(const Queue& queue);

/// The maximum length of `pools` and of `overflow`: with more, tiers would overlap.
constexpr std::size_t k_most_pools = 10;

} // namespace gpuq::policy
