// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/canvas.h"
#include "tui/picture.h"

namespace gpuq::tui {

/// Lowest and highest.
struct Range {
    double low = 0, high = 0;
};
/// Of the known values; nothing when none is known.
std::optional<Range> range_of(const Curve& curve);

/// A number as short as 5 cells allow: `0.482`, `1.2e5`, `64`.
std::string short_number(double value);

/// Draws the curve into `rows` rows from `top` on, `columns` wide: a line with title, unit, newest
/// value, lowest and highest, then the curve in braille (two by four dots a cell), or with `ascii`
/// one `*` a cell: between lowest and highest, in percent between 0 and 100. A gap is where nothing
/// is known. Needs two rows at least.
void draw_curve(Canvas& canvas, int top, int left, int rows, int columns, const Curve& curve,
                bool ascii);

} // namespace gpuq::tui
