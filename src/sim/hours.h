// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/calendar.h"
#include "sim/trace_clock.h"

#include <string>
#include <vector>

namespace gpuq::sim {

/// From a time on, other hours of a policy are open.
struct HoursChange {
    Seconds time{0};
    policy::LocalMinutes wall; ///< on the clock on the wall
    std::string open;          ///< as from policy::open_hours()

    bool operator==(const HoursChange&) const = default;
};

/// The changes of a policy's hours from time zero, which is always the first one, to `end`; empty
/// if it has no hours.
std::vector<HoursChange> changes_of_hours(const policy::Policy& policy, const TraceClock& clock,
                                          Seconds end);

} // namespace gpuq::sim
