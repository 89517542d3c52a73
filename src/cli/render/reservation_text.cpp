// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/reservation_text.h"

#include "cli/render/usage_text.h"
#include "core/number.h"
#include "core/strings.h"
#include "core/timestamp.h"
#include "core/walltime.h"
#include "report/ending_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

namespace gpuq::cli {
namespace {

using report::Column;
using report::Json;

/// Names beyond these are counted.
constexpr std::size_t k_most_names = 3;

/// The next time at which the clocks of this machine show `hours`:`minutes`.
Time next_at(int hours, int minutes, Time now)
{
    const std::time_t seconds =
        std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
    const auto on_day = [&](int days) {
        std::tm day{};
        ::localtime_r(&seconds, &day);
        day.tm_mday += days;
        day.tm_hour = 12;
        day.tm_isdst = -1;
        (void)std::mktime(&day); // perhaps in the next month
        day.tm_hour = hours;
        day.tm_min = minutes;
        day.tm_sec = 0;
        return time_from_local(day).value_or(now);
    };
    const Time today = on_day(0);
    return today < now ? on_day(1) : today;
}

std::optional<Time> clock_time(std::string_view text, Time now)
{
    const auto [hours, minutes] = cut(text, ':');
    const auto hour = whole_number(hours);
    const auto minute = whole_number(minutes);
    const bool fits =
        hour && minute && hours.size() <= 2 && minutes.size() == 2 && *hour < 24 && *minute < 60;
    return fits ? std::optional(next_at(static_cast<int>(*hour), static_cast<int>(*minute), now))
                : std::nullopt;
}

std::string who_text(const std::vector<std::string>& names)
{
    const std::size_t shown = names.size() <= k_most_names + 1 ? names.size() : k_most_names;
    const std::vector<std::string> first(names.begin(),
                                         names.begin() + static_cast<std::ptrdiff_t>(shown));
    std::string text = fmt::format("{}", fmt::join(first, ", "));
    if (shown < names.size()) {
        text += fmt::format(" and {} others", names.size() - shown);
    }
    return text;
}

std::string for_text(const Reservation& reservation)
{
    return !reservation.users.empty() ? who_text(reservation.users)
           : reservation.accounts.empty()
               ? "-"
               : fmt::format("{} {}", reservation.accounts.size() == 1 ? "account" : "accounts",
                             who_text(reservation.accounts));
}

std::string by_text(const Reservation& reservation)
{
    const auto made = parse_reservation_name(reservation.name);
    return made ? fmt::format(" by {} ({})", made->maker, made->name)
                : fmt::format(" ({})", reservation.name);
}

Json json_of(const ReservedGpus& reserved, Time now)
{
    const Reservation& reservation = reserved.reservation;
    const auto made = parse_reservation_name(reservation.name);
    return Json::object({{"name", made ? made->name : reservation.name},
                         {"maker", made ? Json(made->maker) : Json()},
                         {"slurm_name", reservation.name},
                         {"from", reservation.start},
                         {"until", reservation.end},
                         {"active", reservation.start <= now && now < reservation.end},
                         {"gpus", reserved.gpus},
                         {"nodes", Json::array(reserved.nodes)},
                         {"users", Json::array(reservation.users)},
                         {"accounts", Json::array(reservation.accounts)}});
}

} // namespace

Result<Time> parse_start(std::string_view text, Time now)
{
    if (text == "now") {
        return now;
    }
    if (const auto at = clock_time(text, now)) {
        return *at;
    }
    constexpr std::string_view k_units = "smhd";
    const bool is_duration = !text.empty() && k_units.find(text.back()) != std::string_view::npos;
    if (const auto wait = parse_duration(text); wait && is_duration) {
        return now + *wait;
    }
    const auto at = parse_moment(text, now);
    if (!at || is_duration || text == "today" || text.find('-') == std::string_view::npos) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is not a start: now, 14:00, 2026-12-07T13:00, or how long "
                                "from now, such as 2h",
                                text));
    }
    if (*at < now) {
        return fail(Error::Kind::usage, fmt::format("{} is in the past", text));
    }
    return *at;
}

std::string reserved_text(const Reservation& reservation, Time now)
{
    const std::string until = clock_text(reservation.end, now);
    return reservation.start <= now
               ? fmt::format("reserved until {}{}", until, by_text(reservation))
               : fmt::format("reserved from {} to {}{}", clock_text(reservation.start, now), until,
                             by_text(reservation));
}

std::string reservation_line(const ReservedGpus& reserved, Time now)
{
    const Reservation& reservation = reserved.reservation;
    return fmt::format("{} on {}: {} for {}",
                       counted(static_cast<std::uint64_t>(reserved.gpus), "GPU"), reservation.nodes,
                       reserved_text(reservation, now), for_text(reservation));
}

report::Table reservation_table(const std::vector<ReservedGpus>& reserved, Time now)
{
    report::Table table;
    table.columns = {{"name", "NAME"},
                     {"by", "BY"},
                     {"from", "FROM"},
                     {"until", "UNTIL"},
                     {"gpus", "GPUS", Column::Align::right},
                     {"nodes", "NODES", Column::Align::left, Column::Shrink::yes},
                     {"for", "FOR", Column::Align::left, Column::Shrink::yes}};
    for (const ReservedGpus& one : reserved) {
        const Reservation& reservation = one.reservation;
        const auto made = parse_reservation_name(reservation.name);
        table.rows.push_back({made ? made->name : reservation.name, made ? made->maker : "-",
                              clock_text(reservation.start, now), clock_text(reservation.end, now),
                              std::to_string(one.gpus), reservation.nodes, for_text(reservation)});
    }
    return table;
}

Json reservations_json(const std::vector<ReservedGpus>& reserved, Time now)
{
    Json::Elements list;
    for (const ReservedGpus& one : reserved) {
        list.push_back(json_of(one, now));
    }
    return Json::array(std::move(list));
}

Json::Members reservation_document(const std::vector<ReservedGpus>& reserved, Time now)
{
    return {{"reservations", reservations_json(reserved, now)}};
}

} // namespace gpuq::cli
