// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/walltime.h"

#include "core/number.h"
#include "core/strings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace gpuq {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds k_longest = days{3660};
constexpr std::string_view k_examples =
    "write it like 90 (minutes), 2h, 1h30m, 1:30:00 or 1-12 (a day and 12 h)";

struct Unit {
    char letter;
    seconds length;
};
constexpr std::array<Unit, 4> k_units = {Unit{'d', days{1}}, Unit{'h', hours{1}},
                                         Unit{'m', minutes{1}}, Unit{'s', seconds{1}}};

Error no_time(std::string_view text, std::string_view reason)
{
    return fail(Error::Kind::usage, fmt::format("'{}' is not a time: {}", text, reason));
}

/// `amount` times `unit`; nullopt beyond the maximum, so that no sum below can overflow.
std::optional<seconds> times(std::string_view amount, seconds unit)
{
    const auto number = whole_number(amount);
    if (!number || *number > static_cast<std::uint64_t>(k_longest / unit)) {
        return std::nullopt;
    }
    return unit * static_cast<std::int64_t>(*number);
}

bool is_digits(std::string_view text)
{
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Error too_long(std::string_view text)
{
    return no_time(text, "it is longer than ten years");
}

/// Sum of the fields times their units. Every field must consist of digits.
Result<seconds> sum(std::string_view text, const std::vector<std::string_view>& fields,
                    const std::vector<seconds>& units)
{
    seconds total{0};
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (!is_digits(fields[i])) {
            return no_time(text, k_examples);
        }
        const auto part = times(fields[i], units[i]);
        if (!part) {
            return too_long(text);
        }
        total += *part;
    }
    if (total > k_longest) {
        return too_long(text);
    }
    return total;
}

/// `2:30`: Slurm reads it as minutes and seconds, most users as hours and minutes.
Error two_readings(std::string_view text, const std::vector<std::string_view>& fields)
{
    if (!is_digits(fields[0]) || !is_digits(fields[1])) {
        return no_time(text, k_examples);
    }
    return no_time(text,
                   fmt::format("it may be {0} min {1} s (Slurm's reading: write 0:{0}:{1}) or "
                               "{0} h {1} min (write {0}:{1}:00 or {0}h{1}m)",
                               fields[0], fields[1]));
}

Result<seconds> clock(std::string_view text, std::string_view days_given, std::string_view rest)
{
    std::vector<std::string_view> fields = split(rest, ":");
    if (fields.size() > 3) {
        return no_time(text, fmt::format("it has too many colons; {}", k_examples));
    }
    std::vector<seconds> units = {hours{1}, minutes{1}, seconds{1}};
    if (!days_given.empty()) {
        fields.insert(fields.begin(), days_given);
        units.insert(units.begin(), days{1});
        return sum(text, fields, units);
    }
    if (fields.size() == 2) {
        return two_readings(text, fields);
    }
    return sum(text, fields, fields.size() == 1 ? std::vector<seconds>{minutes{1}} : units);
}

/// `1d12h`, `1h30m`, `90s`: units in descending order, each at most once.
Result<seconds> with_units(std::string_view text)
{
    std::vector<std::string_view> amounts;
    std::vector<seconds> units;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t end = rest.find_first_not_of("0123456789");
        if (end == std::string_view::npos) {
            return no_time(text, fmt::format("add a unit to {}, as in {}m", rest, text));
        }
        const auto* unit = std::find_if(k_units.begin(), k_units.end(),
                                        [&](const Unit& u) { return u.letter == rest[end]; });
        if (end == 0 || unit == k_units.end() || (!units.empty() && unit->length >= units.back())) {
            return no_time(text, k_examples);
        }
        amounts.push_back(rest.substr(0, end));
        units.push_back(unit->length);
        rest.remove_prefix(end + 1);
    }
    return sum(text, amounts, units);
}

} // namespace

Result<seconds> parse_duration(std::string_view text)
{
    if (text.empty()) {
        return no_time(text, k_examples);
    }
    const std::size_t dash = text.find('-');
    if (dash == 0) {
        return no_time(text, "it is negative");
    }
    if (dash != std::string_view::npos) {
        return clock(text, text.substr(0, dash), text.substr(dash + 1));
    }
    const bool clock_form = text.find_first_not_of("0123456789:") == std::string_view::npos;
    return clock_form ? clock(text, "", text) : with_units(text);
}

Result<minutes> parse_walltime(std::string_view text)
{
    TRY_ASSIGN(const seconds length, parse_duration(text));
    if (length == seconds{0}) {
        return no_time(text, "it is zero");
    }
    return std::chrono::ceil<minutes>(length);
}

std::string to_text(minutes walltime)
{
    const auto full_days = std::chrono::floor<days>(walltime);
    const auto full_hours = std::chrono::floor<hours>(walltime - full_days);
    const auto rest = walltime - full_days - full_hours;
    std::vector<std::string> parts;
    if (full_days.count() > 0) {
        parts.push_back(
            fmt::format("{} {}", full_days.count(), full_days.count() == 1 ? "day" : "days"));
    }
    if (full_hours.count() > 0) {
        parts.push_back(fmt::format("{} h", full_hours.count()));
    }
    if (rest.count() > 0 || parts.empty()) {
        parts.push_back(fmt::format("{} min", rest.count()));
    }
    return fmt::format("{}", fmt::join(parts, " "));
}

std::string slurm_time(minutes walltime)
{
    const auto full_days = std::chrono::floor<days>(walltime);
    const auto full_hours = std::chrono::floor<hours>(walltime - full_days);
    const auto rest = walltime - full_days - full_hours;
    return fmt::format("{}-{:02}:{:02}:00", full_days.count(), full_hours.count(), rest.count());
}

} // namespace gpuq
