// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/world.h"

#include <optional>
#include <vector>

namespace gpuq::sim {

struct Passed {
    std::vector<std::uint32_t> started;
    std::vector<std::uint32_t> evicted; ///< running, and leave now sooner
    bool stopped_early = false;         ///< the queue is longer than what was looked at
    std::chrono::microseconds took{0};  ///< by Slurm's clock
};

/// The main loop: the queue from its head; a job that finds no nodes closes its partition, and the
/// partition's nodes, to all that come after it. At most `depth` entries.
Passed main_pass(World& world, std::optional<int> depth);

/// The conservative backfill: every job in order starts now if that delays no planned start of a
/// job before it, else books its nodes, whole, for when it can.
Passed backfill_cycle(World& world);

/// Running links that would have to leave so that `entry` could start on nodes of `allowed`: none
/// when it can not be. `nodes` is set to where it would start.
std::vector<std::uint32_t> victims(const World& world, const Entry& entry, const NodeSet& allowed,
                                   NodeSet& nodes);
/// Tells them to leave, but those who know already; returns those that leave sooner for it.
std::vector<std::uint32_t> evict(World& world, const std::vector<std::uint32_t>& links);

} // namespace gpuq::sim
