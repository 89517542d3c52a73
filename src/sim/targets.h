// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/decide.h"
#include "sim/scenario.h"
#include "sim/simulate.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::sim {

/// A wait target of a queue (`wait:`) that a course does not meet.
struct BrokenTarget {
    std::string queue;
    int percent = 100; ///< of its runs: 50, 95, or 100 (all)
    Seconds target{0};
    std::optional<Seconds> wait; ///< the longest wait of this percentage; nullopt: they never start
    int line = 0;                ///< in the policy file

    bool operator==(const BrokenTarget&) const = default;
};

/// In the order of the file. A run counts for the queue to which it was submitted, with the wait
/// for its first start; a refused run does not count.
std::vector<BrokenTarget> broken_targets(const policy::Rules& rules, const Scenario& scenario,
                                         const Course& course);

/// The runs of the trace that were refused, with the reason: by the policy, or by a limit on a
/// user's submitted jobs.
std::map<std::size_t, std::string> refusals(const Scenario& scenario, const Course& course);

} // namespace gpuq::sim
