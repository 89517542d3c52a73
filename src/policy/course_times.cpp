// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/course_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace gpuq::policy {
namespace {

using std::chrono::days;
using Repeat = Course::Repeat;

/// More than two weeks: all repetitions have a period of at most one week.
constexpr days k_enough{15};

/// The start times of a course that are relevant from `since` on, for a period in which every
/// combination of weekdays occurs.
std::vector<LocalMinutes> beginnings(const Course& course, LocalMinutes since)
{
    LocalMinutes time = local_time_of(course.start.value);
    const Repeat repeat = course.repeat.value;
    if (repeat == Repeat::once) {
        return {time};
    }
    const days step(repeat == Repeat::weekly ? 7 : 1);
    if (time + course.duration.value <= since) {
        time += (since - time - course.duration.value) / step * step;
    }
    std::vector<LocalMinutes> times;
    for (; time < since + k_enough; time += step) {
        if (repeat != Repeat::weekdays || is_workday(time)) {
            times.push_back(time);
        }
    }
    return times;
}

} // namespace

LocalMinutes local_time_of(const std::string& text)
{
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    int hour = 0;
    int minute = 0;
    (void)std::sscanf(text.c_str(), "%d-%u-%uT%d:%d", &year, &month, &day, &hour, &minute);
    return std::chrono::local_days(std::chrono::year(year) / std::chrono::month(month) /
                                   std::chrono::day(day)) +
           std::chrono::hours(hour) + minutes(minute);
}

std::string as_written(LocalMinutes time)
{
    const auto day = std::chrono::floor<days>(time);
    const std::chrono::year_month_day date(day);
    const auto of_day = (time - day).count();
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       of_day / 60, of_day % 60);
}

bool is_workday(LocalMinutes time)
{
    return std::chrono::weekday(std::chrono::floor<days>(time)).iso_encoding() <= 5;
}

std::optional<LocalMinutes> both_on(const Course& one, const Course& other)
{
    const LocalMinutes since =
        std::max(local_time_of(one.start.value), local_time_of(other.start.value));
    std::optional<LocalMinutes> first;
    for (const LocalMinutes a : beginnings(one, since)) {
        for (const LocalMinutes b : beginnings(other, since)) {
            const LocalMinutes begin = std::max(a, b);
            const LocalMinutes end = std::min(a + one.duration.value, b + other.duration.value);
            if (begin < end && (!first || begin < *first)) {
                first = begin;
            }
        }
    }
    return first;
}

} // namespace gpuq::policy
