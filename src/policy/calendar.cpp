// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/calendar.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <utility>

namespace gpuq::policy {
namespace {

using std::chrono::days;

constexpr std::array<std::string_view, 7> k_days{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

std::size_t weekday_of(std::chrono::local_days day)
{
    return std::chrono::weekday(day).iso_encoding() - 1;
}

template <typename T>
void replace(Maybe<T>& value, const Maybe<T>& by)
{
    if (by) {
        value = by;
    }
}

void replace(Share& share, const Share& by)
{
    replace(share.gpus, by.gpus);
    replace(share.soft_gpus, by.soft_gpus);
    replace(share.jobs, by.jobs);
    replace(share.queued, by.queued);
    replace(share.gpu_hours_ahead, by.gpu_hours_ahead);
    replace(share.shares, by.shares);
}

void replace(Limits& limits, const Limits& by)
{
    replace(limits.user, by.user);
    replace(limits.account, by.account);
    replace(limits.all, by.all);
    replace(limits.job.gpus, by.job.gpus);
    replace(limits.job.nodes, by.job.nodes);
    replace(limits.job.shares, by.job.shares);
}

void replace(Queue& queue, const CalendarEntry& by)
{
    const bool states_default = queue.default_time.line > 0;
    if (by.max_time) {
        queue.max_time = *by.max_time;
        queue.default_time.value = states_default
                                       ? std::min(queue.default_time.value, queue.max_time.value)
                                       : queue.max_time.value;
    }
    if (by.default_time) {
        queue.default_time = *by.default_time;
    }
    replace(queue.limits, by.limits);
}

bool has_calendar(const Policy& policy)
{
    return std::any_of(policy.queues.begin(), policy.queues.end(),
                       [](const Queue& queue) { return !queue.calendar.empty(); });
}

} // namespace

LocalMinutes to_local(Time time)
{
    const std::time_t whole =
        std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
    std::tm parts{};
    ::localtime_r(&whole, &parts);
    return std::chrono::local_days(std::chrono::year(parts.tm_year + 1900) /
                                   std::chrono::month(static_cast<unsigned>(parts.tm_mon) + 1) /
                                   std::chrono::day(static_cast<unsigned>(parts.tm_mday))) +
           std::chrono::hours(parts.tm_hour) + minutes(parts.tm_min);
}

bool is_open(const Window& window, LocalMinutes time)
{
    const auto today = std::chrono::floor<days>(time);
    const minutes length =
        window.to > window.from ? window.to - window.from : window.to - window.from + days(1);
    for (const auto day : {today, today - days(1)}) {
        const LocalMinutes begin = day + window.from;
        if (window.days.at(weekday_of(day)) && begin <= time && time < begin + length) {
            return true;
        }
    }
    return false;
}

Policy policy_at(Policy policy, LocalMinutes time)
{
    for (Queue& queue : policy.queues) {
        for (const CalendarEntry& entry : std::exchange(queue.calendar, {})) {
            if (is_open(entry.when, time)) {
                replace(queue, entry);
            }
        }
    }
    return policy;
}

std::optional<std::string> open_entries(const Policy& policy, LocalMinutes time)
{
    if (!has_calendar(policy)) {
        return std::nullopt;
    }
    std::string open;
    for (const Queue& queue : policy.queues) {
        for (const CalendarEntry& entry : queue.calendar) {
            if (is_open(entry.when, time)) {
                open += fmt::format("{}{}:{}", open.empty() ? "" : " ", queue.name, entry.line);
            }
        }
    }
    return open;
}

std::vector<LocalMinutes> changes_in_a_week(const Policy& policy)
{
    constexpr std::chrono::local_days k_monday(std::chrono::year(2026) / std::chrono::June /
                                               std::chrono::day(1));
    std::set<LocalMinutes> times;
    for (const Queue& queue : policy.queues) {
        for (const CalendarEntry& entry : queue.calendar) {
            for (int day = 0; day < 7; ++day) {
                times.insert(k_monday + days(day) + entry.when.from);
                times.insert(k_monday + days(day) + entry.when.to % days(1));
            }
        }
    }
    std::erase_if(times, [&](LocalMinutes time) {
        return open_entries(policy, time) == open_entries(policy, time - minutes(1));
    });
    return {times.begin(), times.end()};
}

std::string weekday_and_time(LocalMinutes time)
{
    const auto day = std::chrono::floor<days>(time);
    const auto of_day = (time - day).count();
    return fmt::format("{} {:02}:{:02}", k_days.at(weekday_of(day)), of_day / 60, of_day % 60);
}

std::optional<Time> next_change(const Policy& policy, Time now)
{
    // A week, and the hours that daylight saving may add. All time zones of today change at whole
    // minutes.
    constexpr days k_enough{8};
    const auto open = open_entries(policy, to_local(now));
    if (!open) {
        return std::nullopt;
    }
    for (auto time = std::chrono::floor<minutes>(now) + minutes(1); time < now + k_enough;
         time += minutes(1)) {
        if (open_entries(policy, to_local(time)) != open) {
            return time;
        }
    }
    return std::nullopt;
}

} // namespace gpuq::policy
