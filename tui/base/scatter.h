// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/base/canvas.h"
#include "tui/base/theme.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A value over a parameter, a mark for each try. Pure.
namespace gpuq::tui {

/// Texts need not be sanitised.
struct Scatter {
    std::string parameter, metric; ///< for the line above
    std::string note;              ///< behind them
    bool logarithmic = false;      ///< the y axis; values that are not positive are left out
    struct Point {
        std::string_view value;       ///< of the parameter
        std::optional<double> result; ///< unset: its value only extends the x axis
        /// Of several points in one cell, that of the last kind is drawn.
        enum class Kind { other, running, best, selected } kind = Kind::other;
    };
    std::vector<Point> points;
};

/// Draws the points below a line of text, with axes and ticks. If all values of the parameter are
/// numbers, the x axis is numeric, and logarithmic if they are positive and span decades; else each
/// value has a place, in the order of its first point. Needs six rows; draws nothing in less.
void draw_scatter(Canvas& canvas, const Rect& area, Scatter scatter, const Theme& theme);

} // namespace gpuq::tui
