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

/// The most entries of all calendars in a policy.
constexpr std::size_t k_most_entries = 50;

/// The time in the time zone of this process. Seconds are cut off.
LocalMinutes to_local(Time time);

bool is_open(const Window& window, LocalMinutes time);

/// The policy with the values of a moment and without calendars.
Policy policy_at(Policy policy, LocalMinutes time);

/// The entries that are open at a moment, as queue and line: `short:12 short:14`; empty: none.
/// nullopt if the policy has no calendar. Two moments with the same entries have the same policy.
std::optional<std::string> open_entries(const Policy& policy, LocalMinutes time);

/// The times in a week, which begins on a Monday, at which the entries that are open change.
std::vector<LocalMinutes> changes_in_a_week(const Policy& policy);

/// `Mon 20:00`
std::string weekday_and_time(LocalMinutes time);

/// When the entries that are open at `now` change next, in the time zone of this process; nullopt:
/// never.
std::optional<Time> next_change(const Policy& policy, Time now);

} // namespace gpuq::policy
