// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/world.h"

#include <optional>
#include <vector>

namespace gpuq::sim {

struct Passed {
    std::vector<std::uint32_t> started;
    std::vector<std::uint32_t> evicted; ///< running, but leave earlier now
    bool stopped_early = false;         ///< the queue is longer than the part that was tested
    std::chrono::microseconds took{0};  ///< on Slurm's clock
};

/// The main loop: processes the queue from its head; a job that finds no nodes closes its
/// partition, and the partition's nodes, to all jobs behind it. At most `depth` entries.
Passed main_pass(World& world, std::optional<int> depth);

/// Conservative backfill: every job in order starts now if that delays no planned start of an
/// earlier job; otherwise it books whole nodes for its planned start.
Passed backfill_cycle(World& world);

/// The running links that would have to leave so that `entry` could start on nodes of `allowed`;
/// empty if that is impossible. `nodes` is set to the nodes on which it would start.
std::vector<std::uint32_t> victims(const World& world, const Entry& entry, const NodeSet& allowed,
                                   NodeSet& nodes);
/// The nodes of the entry's shape on which it would fit if all jobs that it may preempt had left.
NodeSet evictable_nodes(const World& world, const Entry& entry);
/// Notifies the links that they must leave, except those already notified; returns those that leave
/// earlier as a result.
std::vector<std::uint32_t> evict(World& world, const std::vector<std::uint32_t>& links);

} // namespace gpuq::sim
