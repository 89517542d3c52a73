// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/trace_clock.h"

#include "policy/calendar.h"

namespace gpuq::sim {
namespace {

/// All time zones of today differ by whole minutes.
LocalSeconds local(Time instant)
{
    const auto second = std::chrono::floor<Seconds>(instant);
    const auto minute = std::chrono::floor<std::chrono::minutes>(second);
    return policy::to_local(minute) + (second - minute);
}

} // namespace

LocalSeconds TraceClock::at(Seconds time) const
{
    return instant ? local(*instant + time) : wall + time;
}

TraceClock TraceClock::since(Time instant)
{
    return {true, local(instant), instant};
}

TraceClock TraceClock::on_the_wall(LocalSeconds zero)
{
    return {true, zero, std::nullopt};
}

} // namespace gpuq::sim
