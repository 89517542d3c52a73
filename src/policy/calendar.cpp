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

/// The first day of any week.
constexpr std::chrono::local_days k_monday(std::chrono::year(2026) / std::chrono::June /
                                           std::chrono::day(1));

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

/// All hours of a policy, with a name and the line for each, and the notice time before their end.
struct Named {
    const Hours* hours;
    std::string_view name;
    int line;
    seconds notice;
};
std::vector<Named> all_hours(const Policy& policy)
{
    std::vector<Named> all;
    for (const Pool& pool : policy.pools) {
        if (!pool.when.empty()) {
            all.push_back({&pool.when, pool.name, pool.line, pool.notice()});
        }
        if (pool.lend && !pool.lend->when.empty()) {
            all.push_back({&pool.lend->when, pool.name, pool.lend->line, pool.notice()});
        }
    }
    for (const Queue& queue : policy.queues) {
        for (const CalendarEntry& entry : queue.calendar) {
            all.push_back({&entry.when, queue.name, entry.line, seconds{0}});
        }
    }
    return all;
}

/// The end of the window if it is open.
std::optional<LocalMinutes> end_of(const Window& window, LocalMinutes time)
{
    const auto today = std::chrono::floor<days>(time);
    const minutes length =
        window.to > window.from ? window.to - window.from : window.to - window.from + days(1);
    for (const auto day : {today, today - days(1)}) {
        const LocalMinutes begin = day + window.from;
        if (window.days.at(weekday_of(day)) && begin <= time && time < begin + length) {
            return begin + length;
        }
    }
    return std::nullopt;
}

/// Whether the hours are open now and still after the notice time.
bool stays_open(const Hours& hours, seconds notice, LocalMinutes time)
{
    constexpr days k_enough{8}; // longer than any stretch that ends
    const LocalMinutes last = std::min(time + std::chrono::ceil<minutes>(notice), time + k_enough);
    for (LocalMinutes until = time; until <= last;) {
        const LocalMinutes from = until;
        for (const Window& window : hours) {
            until = std::max(until, end_of(window, from).value_or(from));
        }
        if (until == from) {
            return false;
        }
    }
    return true;
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

bool is_open(const Hours& hours, LocalMinutes time)
{
    return std::any_of(hours.begin(), hours.end(),
                       [&](const Window& window) { return end_of(window, time).has_value(); });
}

Policy policy_at(Policy policy, LocalMinutes time)
{
    for (Pool& pool : policy.pools) {
        const seconds notice = pool.notice();
        const Hours hours = std::exchange(pool.when, {});
        pool.closed = pool.closed || (!hours.empty() && !stays_open(hours, notice, time));
        if (pool.lend) {
            const Hours lent = std::exchange(pool.lend->when, {});
            pool.lend->closed =
                pool.lend->closed || (!lent.empty() && !stays_open(lent, notice, time));
        }
    }
    for (Queue& queue : policy.queues) {
        for (const CalendarEntry& entry : std::exchange(queue.calendar, {})) {
            if (is_open(entry.when, time)) {
                replace(queue, entry);
            }
        }
    }
    return policy;
}

std::optional<std::string> open_hours(const Policy& policy, LocalMinutes time)
{
    const auto all = all_hours(policy);
    std::string open;
    for (const Named& one : all) {
        if (stays_open(*one.hours, one.notice, time)) {
            open += fmt::format("{}{}:{}", open.empty() ? "" : " ", one.name, one.line);
        }
    }
    return all.empty() ? std::nullopt : std::optional(open);
}

std::vector<LocalMinutes> changes_in_a_week(const Policy& policy)
{
    std::set<LocalMinutes> times;
    for (const Named& one : all_hours(policy)) {
        for (const Window& window : *one.hours) {
            for (int day = 0; day < 7; ++day) {
                const auto of_day = [&](minutes time) {
                    return k_monday + days(day) + (time % days(1) + days(1)) % days(1);
                };
                times.insert(of_day(window.from));
                times.insert(of_day(window.to - std::chrono::ceil<minutes>(one.notice)));
            }
        }
    }
    std::erase_if(times, [&](LocalMinutes time) {
        return open_hours(policy, time) == open_hours(policy, time - minutes(1));
    });
    return {times.begin(), times.end()};
}

std::size_t count_windows(const Policy& policy)
{
    std::size_t count = 0;
    for (const Named& one : all_hours(policy)) {
        count += one.hours->size();
    }
    return count;
}

bool ever_opens(const Hours& hours, seconds notice)
{
    return std::any_of(hours.begin(), hours.end(), [&](const Window& window) {
        for (int day = 0; day < 7; ++day) {
            if (stays_open(hours, notice, k_monday + days(day) + window.from)) {
                return true;
            }
        }
        return false;
    });
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
    const auto open = open_hours(policy, to_local(now));
    if (!open) {
        return std::nullopt;
    }
    for (auto time = std::chrono::floor<minutes>(now) + minutes(1); time < now + k_enough;
         time += minutes(1)) {
        if (open_hours(policy, to_local(time)) != open) {
            return time;
        }
    }
    return std::nullopt;
}

} // namespace gpuq::policy
