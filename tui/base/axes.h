// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/base/canvas.h"
#include "tui/base/theme.h"

#include <string>
#include <vector>

/// The axes of charts. Pure.
namespace gpuq::tui {

/// Lowest and highest value.
struct Range {
    double low = 0, high = 0;
};

/// Its ends differ by rounding at most, or are too far apart for a difference.
bool is_flat(const Range& range);
/// A number in at most 6 cells: `0.482`, `1.2e5`, `64`.
std::string short_number(double value);
/// The same for several numbers, with as many more digits as make different numbers differ.
std::vector<std::string> short_numbers(const std::vector<double>& values);
/// At most `most` round numbers within the range, ascending: multiples of 1, 2 or 5 times a power
/// of ten.
std::vector<double> ticks(const Range& range, int most);
/// Powers of ten within a range of positive numbers; if there are fewer than two, as ticks().
std::vector<double> log_ticks(const Range& range, int most);

/// A tick with its label.
struct AxisMark {
    double share = 0; ///< of the axis; outside of 0 to 1 it is not drawn
    std::string text; ///< sanitised
};

/// How many ticks an axis has room for.
int most_ticks_down(int rows);
int most_ticks_across(int columns);

/// Draws axes in an area and returns the part that they enclose: the labels of `down` are on the
/// left, those of `across` below, as many as fit.
Rect draw_axes(Canvas& canvas, const Rect& area, const std::vector<AxisMark>& down,
               const std::vector<AxisMark>& across, const Theme& theme);
/// The part that axes in an area enclose, with these labels on the left.
Rect within_axes(const Rect& area, const std::vector<AxisMark>& down);

} // namespace gpuq::tui
