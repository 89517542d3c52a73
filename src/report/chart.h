// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
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

/// Round numbers around `low` and `high`, with about five ticks.
Axis axis_between(std::string title, double low, double high);

/// From 0 to `length` seconds in units that people count time in, with about eight ticks.
Axis axis_of_time(std::string title, double length);

/// From 0 to the first round number that is not below `high`, with about five ticks.
Axis axis_from_zero(std::string title, double high);

/// Of the same length as `from` to `to`: parts that lie on one another, the first below.
struct Block {
    double from = 0, to = 0;
    std::vector<double> parts;
};

/// How many curves of `Lines::several`, and parts of a block, can be told from one another.
constexpr std::size_t k_most_lines = 8;
constexpr std::size_t k_most_parts = 5;

/// Curves over one another. All texts are texts, not HTML.
struct Chart {
    enum class Lines {
        before_and_after, ///< the first is broken, the second whole; there are two at most
        several           ///< equals, at most `k_most_lines`
    };
    enum class Size { tall, low };

    std::string id; ///< in the page, of a-z and `-`
    std::string title;
    std::string description; ///< what one sees in it, for those who do not see
    Axis x;
    Axis y;
    /// In the order of x. A point whose y is no number is a gap.
    std::vector<std::vector<Point>> curves;
    std::optional<Tick> upright; ///< a line across the chart, with a name
    std::optional<Tick> level;
    Lines lines = Lines::before_and_after;
    Size size = Size::tall;
    std::vector<Block> blocks;    ///< below the curves
    std::vector<Tick> boundaries; ///< where something begins; names that would touch are left out
    std::vector<double> notches;  ///< where something happened, as short lines below the chart
};

/// The chart as SVG for a page of html.h, drawn twice: for a wide screen and for a phone, with
/// letters of a size that can be read on each.
std::string html_chart(const Chart& chart);

/// What says which curve is whose; one without a name is left out.
std::string html_legend(const std::vector<std::string>& names,
                        Chart::Lines lines = Chart::Lines::before_and_after);

/// The same for the parts of blocks.
std::string html_parts_legend(const std::vector<std::string>& names);

} // namespace gpuq::report
