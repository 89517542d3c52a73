// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/timestamp.h"

#include <fmt/format.h>

#include <chrono>

namespace gpuq {
namespace {

constexpr std::string_view k_shape = "dddd-dd-ddTdd:dd:dd";

bool fits(std::string_view text)
{
    if (text.size() <= k_shape.size() || text.back() != 'Z') {
        return false;
    }
    for (std::size_t i = 0; i < k_shape.size(); ++i) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (k_shape[i] == 'd' ? !digit : text[i] != k_shape[i]) {
            return false;
        }
    }
    return true;
}

int number(std::string_view text, std::size_t from, std::size_t count)
{
    int value = 0;
    for (const char c : text.substr(from, count)) {
        value = value * 10 + (c - '0');
    }
    return value;
}

/// Parses a fraction such as `.042` to microseconds; nullopt when invalid.
std::optional<int> fraction(std::string_view text)
{
    if (text.empty()) {
        return 0;
    }
    if (text.front() != '.' || text.size() < 2 || text.size() > 7 ||
        text.substr(1).find_first_not_of("0123456789") != std::string_view::npos) {
        return std::nullopt;
    }
    int value = number(text, 1, text.size() - 1);
    for (std::size_t digits = text.size() - 1; digits < 6; ++digits) {
        value *= 10;
    }
    return value;
}

std::tm local_parts(std::time_t time)
{
    std::tm parts{};
    ::localtime_r(&time, &parts);
    return parts;
}

bool is_same_clock(const std::tm& one, const std::tm& other)
{
    return one.tm_year == other.tm_year && one.tm_mon == other.tm_mon &&
           one.tm_mday == other.tm_mday && one.tm_hour == other.tm_hour &&
           one.tm_min == other.tm_min && one.tm_sec == other.tm_sec;
}

/// The first second with another offset from UTC than the one of `before`; nullopt if `after` has
/// the same.
std::optional<std::time_t> change_between(std::time_t before, std::time_t after)
{
    const auto offset = [](std::time_t time) { return local_parts(time).tm_gmtoff; };
    if (offset(before) == offset(after)) {
        return std::nullopt;
    }
    while (after - before > 1) {
        const std::time_t middle = before + (after - before) / 2;
        if (offset(middle) == offset(before)) {
            before = middle;
        } else {
            after = middle;
        }
    }
    return after;
}

} // namespace

std::string to_iso8601(Time time)
{
    using namespace std::chrono;
    const auto day = floor<days>(time);
    const year_month_day date{day};
    const hh_mm_ss clock{time - day};
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", int(date.year()),
                       unsigned(date.month()), unsigned(date.day()), clock.hours().count(),
                       clock.minutes().count(), clock.seconds().count(),
                       clock.subseconds().count());
}

std::optional<Time> time_from_iso8601(std::string_view text)
{
    using namespace std::chrono;
    if (!fits(text)) {
        return std::nullopt;
    }
    const auto micros = fraction(text.substr(k_shape.size(), text.size() - k_shape.size() - 1));
    const year_month_day date = year{number(text, 0, 4)} /
                                month(static_cast<unsigned>(number(text, 5, 2))) /
                                day(static_cast<unsigned>(number(text, 8, 2)));
    const int hour = number(text, 11, 2);
    const int minute = number(text, 14, 2);
    const int second = number(text, 17, 2);
    if (!micros || !date.ok() || hour > 23 || minute > 59 || second > 60) {
        return std::nullopt;
    }
    return sys_days{date} + hours{hour} + minutes{minute} + seconds{second} + microseconds{*micros};
}

std::optional<Time> time_from_local(std::tm local)
{
    using namespace std::chrono;
    const year_month_day date = year{local.tm_year + 1900} /
                                month{static_cast<unsigned>(local.tm_mon) + 1} /
                                day{static_cast<unsigned>(local.tm_mday)};
    if (!date.ok() || local.tm_sec > 59) {
        return std::nullopt;
    }
    std::tm parts = local;
    parts.tm_isdst = -1;
    const std::time_t time = std::mktime(&parts);
    if (is_same_clock(parts, local)) {
        return Time{std::chrono::seconds{time}};
    }
    // The clock never shows this time: mktime() has used the offset before or after the change.
    constexpr std::time_t k_longest_gap = 24 * 3600;
    const auto change = change_between(time - k_longest_gap, time + k_longest_gap);
    return change ? std::optional(Time{std::chrono::seconds{*change}}) : std::nullopt;
}

std::optional<Time> time_from_local(std::string_view text)
{
    const std::string whole(text);
    for (const char* const form : {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
        std::tm parts{};
        const char* const end = ::strptime(whole.c_str(), form, &parts);
        if (end == whole.c_str() + whole.size()) {
            return time_from_local(parts);
        }
    }
    return std::nullopt;
}

} // namespace gpuq
