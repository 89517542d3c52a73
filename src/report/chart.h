// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpuq::report {

struct Point {
    double x = 0;
    double y = 0;
};

/// Where an axis is labelled.
struct Tick {
    double at = 0;
    std::string label;

    bool operator==(const Tick&) const = default;
};

struct Axis {
    std::string title;
    double low = 0;
    double high = 1;
    bool logarithmic = false;
    std::vector<Tick> ticks; ///< those whose labels would touch are left out
};

/// From 0 to the first round number that is not below `high`, with about five ticks.
Axis axis_from_zero(std::string title, double high);

/// Curves over one another. All texts are texts, not HTML.
struct Chart {
    std::string id; ///< in the page, of a-z and `-`
    std::string title;
    std::string description; ///< what one sees in it, for those who do not see
    Axis x;
    Axis y;
    /// The first is broken, the second whole; there are two at most. In the order of x.
    std::vector<std::vector<Point>> curves;
    std::optional<Tick> upright; ///< a line across the chart, with a name
    std::optional<Tick> level;
};

/// The chart as SVG for a page of html.h, drawn twice: for a wide screen and for a phone, with
/// letters of a size that can be read on each.
std::string html_chart(const Chart& chart);

/// What says which curve is whose.
std::string html_legend(const std::vector<std::string>& names);

} // namespace gpuq::report
