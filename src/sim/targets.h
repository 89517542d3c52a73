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

/// What a queue promises (`wait:`) and a course does not keep.
struct BrokenTarget {
    std::string queue;
    int percent = 100; ///< of its runs: 50, 95, or all
    Seconds target{0};
    std::optional<Seconds>
        wait;     ///< so many percent wait so long at most; nothing: they never start
    int line = 0; ///< of the policy

    bool operator==(const BrokenTarget&) const = default;
};

/// In the order of the file. A run counts in the queue to which it was submitted, with the wait for
/// its first start; one that is refused counts nowhere.
std::vector<BrokenTarget> broken_targets(const policy::Rules& rules, const Scenario& scenario,
                                         const Course& course);

/// Which runs of the trace were refused, and why: by the policy, or by a limit of what a user may
/// have submitted.
std::map<std::size_t, std::string> refusals(const Scenario& scenario, const Course& course);

} // namespace gpuq::sim
