// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/hours.h"

#include <algorithm>

namespace gpuq::sim {
namespace {

using namespace std::chrono_literals;
using policy::LocalMinutes;

constexpr Seconds k_week = std::chrono::days{7};

/// Since Monday, 00:00.
Seconds in_week(LocalSeconds wall)
{
    const auto day = std::chrono::floor<std::chrono::days>(wall);
    return std::chrono::days(std::chrono::weekday(day).iso_encoding() - 1) + (wall - day);
}

/// The times of a week, in order, at which hours may open or close.
class WeekTimes {
public:
    explicit WeekTimes(const policy::Policy& policy)
    {
        for (const LocalMinutes time : policy::changes_in_a_week(policy)) {
            m_times.push_back(in_week(time));
        }
        std::sort(m_times.begin(), m_times.end());
    }

    bool empty() const { return m_times.empty(); }

    Seconds until_next(LocalSeconds wall) const
    {
        const Seconds now = in_week(wall);
        const auto next = std::upper_bound(m_times.begin(), m_times.end(), now);
        return next != m_times.end() ? *next - now : m_times.front() + k_week - now;
    }

private:
    std::vector<Seconds> m_times;
};

/// The next time to consider. Where the clock on the wall is put forward or back before the next
/// change, that is each hour, then each minute.
Seconds next_time(const WeekTimes& week, const TraceClock& clock, Seconds time)
{
    const LocalSeconds wall = clock.at(time);
    const Seconds change = week.until_next(wall);
    for (const Seconds step : {change, std::min<Seconds>(change, 1h)}) {
        if (clock.at(time + step) - wall == step) {
            return time + step;
        }
    }
    return time + 60s - wall.time_since_epoch() % 60s;
}

} // namespace

std::vector<HoursChange> changes_of_hours(const policy::Policy& policy, const TraceClock& clock,
                                          Seconds end)
{
    std::vector<HoursChange> changes;
    const WeekTimes week(policy);
    for (Seconds time{0}; time <= end; time = next_time(week, clock, time)) {
        const auto wall = std::chrono::floor<std::chrono::minutes>(clock.at(time));
        const auto open = policy::open_hours(policy, wall);
        if (open && (changes.empty() || *open != changes.back().open)) {
            changes.push_back({time, wall, *open});
        }
        if (week.empty()) {
            break;
        }
    }
    return changes;
}

} // namespace gpuq::sim
