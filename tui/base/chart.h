// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/base/axes.h"
#include "tui/base/canvas.h"
#include "tui/base/picture.h"
#include "tui/base/theme.h"

#include <optional>
#include <string>
#include <vector>

/// Curves on a grid of characters: braille (two by four dots per cell), or one `*` per cell.
namespace gpuq::tui {

/// Over the known, finite values; nothing if there is none.
std::optional<Range> range_of(const Curve& curve);
/// The newest value; nothing if it is unknown.
std::optional<double> last_of(const Curve& curve);

/// The visible part of the curves, and how they are drawn.
struct ChartView {
    bool logarithmic = false; ///< y axis; values that are not positive are left out
    bool by_time = false;     ///< x axis: time since the first value, instead of steps
    double smoothing = 0;     ///< weight of the values before, 0 to 0.99, as in TensorBoard
    double from = 0, to = 1;  ///< the visible part of the x axis
    std::optional<double>
        cursor; ///< a place on the visible part, 0 to 1: the legend shows its values
    bool operator==(const ChartView&) const = default;
};

/// The settings that differ from the default: `log scale, over time`.
std::string settings_text(const ChartView& shown);

struct Plotted {
    const Curve* curve = nullptr;
    std::string name; ///< in the legend
    Style style;
};

/// Draws curves with a legend, axes and ticks. Needs four rows; draws nothing in less.
void draw_chart(Canvas& canvas, const Rect& area, const std::vector<Plotted>& curves,
                const ChartView& shown, const Theme& theme);

/// Draws one curve without axes, below a line with its title, unit, newest, lowest and highest
/// value; percentages extend from 0 to 100. Values of a training that fall far have a logarithmic
/// scale. Needs two rows.
void draw_curve(Canvas& canvas, const Rect& area, const Curve& curve, const Style& style,
                const Theme& theme);

} // namespace gpuq::tui
