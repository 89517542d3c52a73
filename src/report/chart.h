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

/// A label at a position of an axis.
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
    std::vector<Tick> ticks; ///< those with overlapping labels are left out
};

/// Round numbers around `low` and `high`, with about five ticks.
Axis axis_between(std::string title, double low, double high);

/// From 0 to `length` seconds in the usual units of time, with about eight ticks.
Axis axis_of_time(std::string title, double length);

/// From 0 to the first round number not below `high`, with about five ticks.
Axis axis_from_zero(std::string title, double high);

/// From `from` to `to`: parts that are stacked, the first at the bottom.
struct Block {
    double from = 0, to = 0;
    std::vector<double> parts;
};

/// How many curves of `Lines::several`, and parts of a block, can be distinguished.
constexpr std::size_t k_most_lines = 20;
constexpr std::size_t k_most_parts = 5;

/// Curves in one drawing. All texts are plain text, not HTML.
struct Chart {
    enum class Lines {
        before_and_after, ///< the first is dashed, the second solid; two at most
        several           ///< of equal rank, at most `k_most_lines`
    };
    enum class Size { tall, low };

    std::string id; ///< in the page, of a-z and `-`
    std::string title;
    std::string description; ///< a text for users who can't see it
    Axis x;
    Axis y;
    /// In the order of x. A point whose y is not a number is a gap.
    std::vector<std::vector<Point>> curves;
    std::optional<Tick> upright; ///< a vertical line, with a name
    std::optional<Tick> level;
    Lines lines = Lines::before_and_after;
    Size size = Size::tall;
    std::vector<Block> blocks;    ///< below the curves
    std::vector<Tick> boundaries; ///< where something begins; overlapping names are left out
    std::vector<double> notches;  ///< events, as short lines below the chart
};

/// The chart as SVG for a page of html.h, drawn twice: for a wide screen and for a phone, with
/// readable letters on each.
std::string html_chart(const Chart& chart);

/// A legend of the curves; one without a name is left out.
std::string html_legend(const std::vector<std::string>& names,
                        Chart::Lines lines = Chart::Lines::before_and_after);

/// A legend of the parts of blocks.
std::string html_parts_legend(const std::vector<std::string>& names);

} // namespace gpuq::report
