// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "policy/course_times.h"
#include "policy/policy.h"

#include <optional>
#include <string>
#include <vector>

/// Rules that hold at certain hours. Everything that reads a policy gets an ordinary one from
/// policy_at(), with the values of one moment.
///
/// A window is open while the clock on the wall shows one of its times. In the hour that a change
/// to daylight saving time skips, it shows none: a window that begins in it opens at its end. In
/// the hour that occurs twice, windows open and close twice.
namespace gpuq::policy {

/// The most windows in a policy.
constexpr std::size_t k_most_windows = 50;

/// The time in the time zone of this process. Seconds are cut off.
LocalMinutes to_local(Time time);

bool is_open(const Hours& hours, LocalMinutes time);

/// The policy with the values of a moment and without hours: calendars are applied, and a pool or
/// its lending is `closed` if it is closed now or at any minute of its notice time.
Policy policy_at(Policy policy, LocalMinutes time);

/// Everything with hours that is open at a moment, as name and line: `short:12 short:14 lab:5`;
/// empty: nothing. nullopt if the policy has no hours. Two moments with the same text have the same
/// policy.
std::optional<std::string> open_hours(const Policy& policy, LocalMinutes time);

/// The times in a week, which begins on a Monday, at which open_hours() changes.
std::vector<LocalMinutes> changes_in_a_week(const Policy& policy);

std::size_t count_windows(const Policy& policy);

/// Whether a pool with these hours and this notice time is open at any time.
bool ever_opens(const Hours& hours, seconds notice);

/// `Mon 20:00`
std::string weekday_and_time(LocalMinutes time);

/// When open_hours() changes next after `now`, in the time zone of this process; nullopt:
/// never.
std::optional<Time> next_change(const Policy& policy, Time now);

} // namespace gpuq::policy
