// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "policy/decide.h"
#include "tune/goal.h"
#include "tune/measure.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::tune {

struct Jobs;

/// The GPU time that some runs need, compared with that of the machine in the same time.
struct Demand {
    std::string group; ///< empty: all runs
    std::size_t runs = 0;
    double gpu_hours = 0;
    double of_all = 0;              ///< of the GPU time of all pools
    std::optional<double> of_pools; ///< of a queue: of its own pools
    double most_in_a_week = 0;      ///< of all pools, in the week with the most
    int busiest_week = 1;
};

/// Of each group, and of all runs together as the last one.
std::vector<Demand> demands_of(const policy::Policy& policy, const sim::Trace& trace,
                               const std::vector<Group>& groups);

/// A target that no policy can hold on these nodes.
struct Impossible {
    Goal goal;
    Seconds best{0}; ///< the wait if the runs had the whole machine to themselves
    Demand demand;
};

/// Simulates the runs of the group alone on all nodes without any limit, in the order of their
/// submission and with the smallest first: nullopt if one of them holds the target.
Result<std::optional<Impossible>> impossible(const policy::Rules& rules, const Jobs& jobs,
                                             const Goal& goal, const Group& group);

} // namespace gpuq::tune
