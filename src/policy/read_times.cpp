// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/sections.h"

#include "core/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace gpuq::policy {
namespace {

using yaml::Node;

constexpr std::array<std::string_view, 7> k_days{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

/// The position in the week, of a day such as `mon`.
std::optional<std::size_t> day_of(std::string_view text)
{
    const auto* const found = std::find(k_days.begin(), k_days.end(), text);
    return found == k_days.end() ? std::nullopt
                                 : std::optional(static_cast<std::size_t>(found - k_days.begin()));
}

/// `mon-fri`, `sat`, `daily`; a range may pass the end of the week.
void add_days(Reader& reader, Window& window, const Node& node)
{
    const std::string_view text = node.kind == Node::Kind::text ? node.text : std::string_view();
    if (text == "daily") {
        window.days.fill(true);
        return;
    }
    const std::size_t dash = text.find('-');
    const auto first = day_of(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : day_of(text.substr(dash + 1));
    if (!first || !last) {
        reader.note(
            node, "not-a-word",
            fmt::format("'{}' is not daily, a day such as mon, or a range such as mon-fri", text));
        return;
    }
    for (std::size_t day = *first;; day = (day + 1) % k_days.size()) {
        window.days.at(day) = true;
        if (day == *last) {
            return;
        }
    }
}

void days_in(Reader& reader, Window& window, const Node& node)
{
    window.days.fill(false);
    const std::vector<Node> single{node};
    for (const Node& item : node.kind == Node::Kind::list ? node.items : single) {
        add_days(reader, window, item);
    }
    if (node.kind == Node::Kind::list && node.items.empty()) {
        reader.note(node, "missing", "an empty list of days: write at least one, or daily");
    }
}

/// `08:00`, up to `most`.
std::optional<minutes> time_of_day_in(Reader& reader, const Node& node, minutes most)
{
    const std::string_view text = node.kind == Node::Kind::text ? node.text : std::string_view();
    const auto hours = text.size() == 5 ? whole_number(text.substr(0, 2)) : std::nullopt;
    const auto rest = text.size() == 5 ? whole_number(text.substr(3)) : std::nullopt;
    const bool fits = hours && rest && text[2] == ':' && *hours <= 24 && *rest <= 59;
    const minutes time = fits ? std::chrono::hours(*hours) + minutes(*rest) : minutes{0};
    if (!fits || time > most) {
        reader.note(node, "not-a-time",
                    fmt::format("'{}' is not a time of day from 00:00 to {}", text,
                                most == std::chrono::hours(24) ? "24:00" : "23:59"));
        return std::nullopt;
    }
    return time;
}

Window window_in(Reader& reader, const Node& node)
{
    constexpr minutes k_day = std::chrono::hours(24);
    Window window;
    std::optional<minutes> from{window.from};
    std::optional<minutes> to{window.to};
    reader.map(
        node, "when",
        {
            {"days", [&](const Node& value) { days_in(reader, window, value); }},
            {"from",
             [&](const Node& value) { from = time_of_day_in(reader, value, k_day - minutes(1)); }},
            {"to", [&](const Node& value) { to = time_of_day_in(reader, value, k_day); }},
        });
    if (from && from == to) {
        reader.note(node, "contradicts",
                    "from and to are the same time; leave both out for all day");
    }
    window.from = from.value_or(window.from);
    window.to = to.value_or(window.to);
    if (node.kind != Node::Kind::text && node.entries.empty()) {
        reader.note(node, "missing", "when needs one of 'days', 'from' and 'to'");
    }
    return window;
}

/// `2026-11-03T13:00`, as accepted by scontrol(1), which would convert an invalid date to another
/// one.
bool is_local_time(std::string_view text)
{
    if (text.size() != 16 || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
        text[13] != ':') {
        return false;
    }
    const auto in = [&](std::size_t at, std::size_t size, std::uint64_t least, std::uint64_t most) {
        const auto value = whole_number(text.substr(at, size));
        return value && *value >= least && *value <= most;
    };
    if (!in(0, 4, 2000, 2999) || !in(5, 2, 1, 12) || !in(8, 2, 1, 31) || !in(11, 2, 0, 23) ||
        !in(14, 2, 0, 59)) {
        return false;
    }
    const auto number = [&](std::size_t at, std::size_t size) {
        return static_cast<unsigned>(whole_number(text.substr(at, size)).value_or(0));
    };
    return std::chrono::year_month_day(std::chrono::year(static_cast<int>(number(0, 4))),
                                       std::chrono::month(number(5, 2)),
                                       std::chrono::day(number(8, 2)))
        .ok();
}

} // namespace

Hours when_in(Reader& reader, const Node& node)
{
    Hours hours;
    const std::vector<Node> single{node};
    for (const Node& item : node.kind == Node::Kind::list ? node.items : single) {
        hours.push_back(window_in(reader, item));
    }
    if (hours.empty()) {
        reader.note(node, "missing", "when needs one of 'days', 'from' and 'to'");
    }
    return hours;
}

std::string local_time_in(Reader& reader, const Node& node)
{
    if (node.kind != Node::Kind::text || !is_local_time(node.text)) {
        reader.note(node, "not-a-date",
                    fmt::format("'{}' is not a local time such as 2026-11-03T13:00", node.text));
        return {};
    }
    return node.text;
}

} // namespace gpuq::policy
