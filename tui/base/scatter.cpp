// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/scatter.h"

#include "term/sanitise.h"
#include "tui/base/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace gpuq::tui {
namespace {

using Kind = Scatter::Point::Kind;

constexpr int k_least_rows = 6, k_least_columns = 16;
/// The highest value of a logarithmic axis in multiples of the lowest, at least.
constexpr double k_decades = 20;
constexpr std::size_t k_longest_label = 14;

std::optional<double> number_in(std::string_view text)
{
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && rest == end && std::isfinite(value) ? std::optional(value)
                                                                       : std::nullopt;
}

/// An axis: a value's share of its length.
struct Axis {
    Range range;
    bool logarithmic = false;

    double share(double value) const
    {
        const auto at = [this](double x) { return logarithmic ? std::log(x) : x; };
        return is_flat(range) ? 0.5
                              : (at(value) - at(range.low)) / (at(range.high) - at(range.low));
    }
    std::vector<AxisMark> marks(int most) const
    {
        const auto found = logarithmic ? log_ticks(range, most) : ticks(range, most);
        const std::vector<std::string> texts = short_numbers(found);
        std::vector<AxisMark> marks;
        for (std::size_t i = 0; i < found.size(); ++i) {
            marks.push_back({share(found[i]), texts[i]});
        }
        return marks;
    }
};

Range range_of(const std::vector<double>& values)
{
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return {*low, *high};
}

/// The x axis, and the place of each point on it.
struct Across {
    Axis axis;
    std::vector<double> places;
    std::vector<std::string> names; ///< of the places 0, 1, ...; empty: they are numbers

    std::vector<AxisMark> marks(int width) const
    {
        if (names.empty()) {
            return axis.marks(most_ticks_across(width));
        }
        std::vector<AxisMark> marks;
        for (std::size_t i = 0; i < names.size(); ++i) {
            marks.push_back({axis.share(static_cast<double>(i)),
                             clipped(sanitised(names[i]), k_longest_label)});
        }
        return marks;
    }
};

std::optional<std::vector<double>> numbers_of(const std::vector<Scatter::Point>& points)
{
    std::vector<double> numbers;
    for (const auto& point : points) {
        const auto number = number_in(point.value);
        if (!number) {
            return std::nullopt;
        }
        numbers.push_back(*number);
    }
    return numbers;
}

Across across(const std::vector<Scatter::Point>& points)
{
    Across found;
    if (auto numbers = numbers_of(points)) {
        const Range range = range_of(*numbers);
        found.axis = {range, range.low > 0 && range.high >= k_decades * range.low};
        found.places = *std::move(numbers);
        return found;
    }
    std::unordered_map<std::string_view, std::size_t> known;
    for (const auto& point : points) {
        const auto [place, is_new] = known.emplace(point.value, found.names.size());
        if (is_new) {
            found.names.emplace_back(point.value);
        }
        found.places.push_back(static_cast<double>(place->second));
    }
    // Half of a place is free on either side.
    found.axis.range = {-0.5, static_cast<double>(found.names.size()) - 0.5};
    return found;
}

Span mark_of(Kind kind, const Theme& theme)
{
    switch (kind) {
    case Kind::best:
        return {theme.ascii ? "#" : "◆", coloured(k_green)};
    case Kind::selected:
        return {theme.ascii ? "@" : "●", bold()};
    case Kind::running:
        return {theme.ascii ? "+" : "◦", coloured(k_yellow)};
    case Kind::other:
        break;
    }
    return {theme.ascii ? "o" : "•", coloured(k_cyan)};
}

void draw_legend(Canvas& canvas, const Rect& area, const Scatter& scatter, bool logarithmic,
                 const Theme& theme)
{
    Line line{{fmt::format("{} over {}", sanitised(scatter.metric), sanitised(scatter.parameter)),
               bold()},
              {logarithmic ? " (log)  " : "  ", {}}};
    for (const auto& [kind, name] : {std::pair{Kind::best, "best"},
                                     {Kind::selected, "selected"},
                                     {Kind::running, "running"}}) {
        line.push_back(mark_of(kind, theme));
        line.push_back({fmt::format(" {}  ", name), {}});
    }
    line.push_back({sanitised(scatter.note), dim()});
    canvas.put(area.top, area.left, line, area.width);
}

} // namespace

void draw_scatter(Canvas& canvas, const Rect& area, Scatter scatter, const Theme& theme)
{
    if (area.height < k_least_rows || area.width < k_least_columns) {
        return;
    }
    auto& points = scatter.points;
    std::vector<double> results;
    for (auto& point : points) {
        if (point.result &&
            (!std::isfinite(*point.result) || (scatter.logarithmic && *point.result <= 0))) {
            point.result.reset();
        }
        if (point.result) {
            results.push_back(*point.result);
        }
    }
    if (results.empty()) {
        draw_legend(canvas, area, scatter, false, theme);
        canvas.put(area.top + 1, area.left, Line{{"no values yet", dim()}}, area.width);
        return;
    }
    const Across x = across(points);
    const Axis y{range_of(results), scatter.logarithmic};
    draw_legend(canvas, area, scatter, x.axis.logarithmic, theme);
    const Rect below{area.top + 1, area.left, area.height - 1, area.width};
    const auto down = y.marks(most_ticks_down(below.height - 2));
    const Rect inner =
        draw_axes(canvas, below, down, x.marks(within_axes(below, down).width), theme);
    const auto at = [](double share, int cells) {
        return static_cast<int>(std::lround(share * (cells - 1)));
    };
    std::map<std::pair<int, int>, Kind> cells_used; // many points may share one
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (points[i].result) {
            Kind& kind = cells_used[{at(1 - y.share(*points[i].result), inner.height),
                                     at(x.axis.share(x.places[i]), inner.width)}];
            kind = std::max(kind, points[i].kind);
        }
    }
    for (const auto& [place, kind] : cells_used) {
        canvas.put(inner.top + place.first, inner.left + place.second, Line{mark_of(kind, theme)},
                   1);
    }
}

} // namespace gpuq::tui
