// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "sim/machine.h"

#include <chrono>
#include <optional>

namespace gpuq::sim {

using LocalSeconds = std::chrono::local_time<Seconds>;

/// Date and time of day at a trace's time zero, for the hours of a policy.
struct TraceClock {
    /// A Monday, for a trace without a date.
    static constexpr LocalSeconds k_monday{std::chrono::local_days(
        std::chrono::year(2024) / std::chrono::January / std::chrono::day(1))};

    bool is_known = false; ///< else `wall` is assumed
    LocalSeconds wall = k_monday;
    /// Set: the times of the trace are those of a stopwatch that was started then, and the clock on
    /// the wall also changes to daylight saving time and back, in the time zone of this process.
    /// Unset: they are those of the clock on the wall, as in the output of sacct.
    std::optional<Time> instant;

    bool operator==(const TraceClock&) const = default;

    /// The time on the clock on the wall.
    LocalSeconds at(Seconds time) const;

    /// A trace whose time zero is this instant.
    static TraceClock since(Time instant);
    /// A trace with the times of the clock on the wall.
    static TraceClock on_the_wall(LocalSeconds zero);
};

} // namespace gpuq::sim
