// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/timestamp.h"

#include <fmt/format.h>

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

} // namespace gpuq
