// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/canvas.h"
#include "tui/picture.h"

namespace gpuq::tui {

/// Lowest and highest value.
struct Range {
    double low = 0, high = 0;
};
/// Over the known values; nothing if none is known.
std::optional<Range> range_of(const Curve& curve);

/// A number in at most 5 cells: `0.482`, `1.2e5`, `64`.
std::string short_number(double value);

/// Draws the curve into `rows` rows from `top` on, `columns` wide: a line with title, unit, newest,
/// lowest and highest value, then the curve in braille (two by four dots per cell), or with `ascii`
/// one `*` per cell. It extends from the lowest to the highest value, or for percentages from 0 to
/// 100. Unknown values are gaps. Needs at least two rows.
void draw_curve(Canvas& canvas, int top, int left, int rows, int columns, const Curve& curve,
                bool ascii);

} // namespace gpuq::tui
