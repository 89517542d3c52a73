// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/goal.h"

#include "core/number.h"
#include "core/walltime.h"
#include "tune/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpuq::tune {
namespace {

constexpr int k_most_percent_more = 10'000;
constexpr double k_cost_of_never = 20;
constexpr double k_least_keep_cost = -3;
constexpr double k_margin = 0.25; ///< of a target that is held

std::string_view trimmed(std::string_view text)
{
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = text.find_last_not_of(' ');
    return end == std::string_view::npos ? "" : text.substr(begin, end + 1 - begin);
}

/// The two sides of `NAME: REST`.
struct Sides {
    std::string name;
    std::string_view rest;
};

Result<Sides> sides_of(std::string_view text, std::string_view example)
{
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || trimmed(text.substr(0, colon)).empty()) {
        return fail(Error::Kind::usage, fmt::format("'{}': expected {}", text, example));
    }
    return Sides{std::string(trimmed(text.substr(0, colon))), trimmed(text.substr(colon + 1))};
}

/// A time with a unit, as in a policy.
Result<Seconds> time_in(std::string_view text)
{
    if (text.empty() || whole_number(text)) {
        return fail(Error::Kind::usage, fmt::format("'{}': a time with its unit, as 5m", text));
    }
    return parse_duration(text);
}

/// 95 for `p95`, 100 for `max`, 0 for `mean`.
std::optional<int> percent_of(std::string_view word)
{
    if (word == "max" || word == "mean") {
        return word == "max" ? 100 : 0;
    }
    const auto number = word.starts_with('p') ? whole_number(word.substr(1)) : std::nullopt;
    return number && *number >= 1 && *number <= 99 ? std::optional(static_cast<int>(*number))
                                                   : std::nullopt;
}

Result<Goal> target_in(const std::string& group, std::string_view text)
{
    const std::size_t sign = text.find("<=");
    const auto percent = percent_of(trimmed(text.substr(0, sign)));
    if (sign == std::string_view::npos || !percent) {
        return fail(
            Error::Kind::usage,
            fmt::format("'{}': expected p50<=TIME, p95<=TIME, max<=TIME or mean<=TIME", text));
    }
    TRY_ASSIGN(const Seconds limit, time_in(trimmed(text.substr(sign + 2))));
    return Goal{group, *percent, limit};
}

} // namespace

Result<std::vector<Goal>> parse_targets(std::string_view text)
{
    TRY_ASSIGN(const Sides sides, sides_of(text, "QUEUE: p95<=5m"));
    std::vector<Goal> goals;
    for (std::string_view rest = sides.rest;;) {
        const std::size_t comma = rest.find(',');
        TRY_ASSIGN(const Goal goal, target_in(sides.name, trimmed(rest.substr(0, comma))));
        goals.push_back(goal);
        if (comma == std::string_view::npos) {
            return goals;
        }
        rest.remove_prefix(comma + 1);
    }
}

Result<Goal> parse_keep(std::string_view text)
{
    TRY_ASSIGN(const Sides sides, sides_of(text, "QUEUE: +20%"));
    Goal goal{sides.name, 0, std::nullopt};
    std::string_view more = sides.rest;
    if (!more.starts_with('+')) {
        return fail(Error::Kind::usage, fmt::format("'{}': expected QUEUE: +20% or +30m", text));
    }
    more.remove_prefix(1);
    if (!more.ends_with('%')) {
        TRY_ASSIGN(goal.time_more, time_in(more));
        return goal;
    }
    const auto percent = whole_number(trimmed(more.substr(0, more.size() - 1)));
    if (!percent || *percent > k_most_percent_more) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}': a percentage from 0 to {}", text, k_most_percent_more));
    }
    goal.percent_more = static_cast<int>(*percent);
    return goal;
}

std::vector<Goal> targets_of(const policy::Policy& policy)
{
    std::vector<Goal> goals;
    for (const policy::Queue& queue : policy.queues) {
        const auto add = [&](int percent, const policy::Maybe<policy::minutes>& limit) {
            if (limit) {
                goals.push_back({queue.name, percent, Seconds{limit->value}});
            }
        };
        add(50, queue.wait.p50);
        add(95, queue.wait.p95);
        add(100, queue.wait.max);
    }
    return goals;
}

Seconds limit_of(const Goal& goal, Seconds now)
{
    if (goal.limit) {
        return *goal.limit;
    }
    // Means below a second count as one, as in sim::harm().
    const Seconds base = std::max(now, Seconds{1});
    if (base == k_never) {
        return k_never;
    }
    return goal.time_more ? base + *goal.time_more : base + base * *goal.percent_more / 100;
}

std::string statistic_of(const Goal& goal)
{
    return goal.percent == 0     ? "mean"
           : goal.percent == 100 ? "max"
                                 : fmt::format("p{}", goal.percent);
}

std::string to_text(const Goal& goal)
{
    if (goal.limit) {
        return fmt::format("{}: {}<={}", goal.group, statistic_of(goal), yaml_time(*goal.limit));
    }
    return goal.time_more ? fmt::format("{}: +{}", goal.group, yaml_time(*goal.time_more))
                          : fmt::format("{}: +{}%", goal.group, *goal.percent_more);
}

double cost_of(const Goal& goal, Seconds wait, Seconds limit)
{
    if (wait == k_never) {
        return limit == k_never ? 0 : k_cost_of_never;
    }
    if (limit == k_never) {
        return k_least_keep_cost;
    }
    constexpr double k_minute = 60;
    const auto plus_a_minute = [](Seconds time) {
        return static_cast<double>(time.count()) + k_minute;
    };
    const double ratio = plus_a_minute(wait) / plus_a_minute(limit);
    const double half = plus_a_minute(limit / 2) / plus_a_minute(limit);
    if (!goal.is_target()) {
        return std::max(std::log(ratio), k_least_keep_cost);
    }
    return ratio > 1 ? std::log(ratio) : k_margin * std::log(std::max(ratio, half));
}

} // namespace gpuq::tune
