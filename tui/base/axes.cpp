// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/axes.h"

#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpuq::tui {
namespace {

constexpr int k_rows_per_tick = 2, k_columns_per_tick = 14;
constexpr int k_most_digits = 8;
/// The lower axis and its labels.
constexpr int k_rows_below = 2;

std::size_t gutter_of(const std::vector<AxisMark>& down)
{
    std::size_t width = 0;
    for (const AxisMark& mark : down) {
        width = std::max(width, cells(mark.text));
    }
    return width;
}

std::string short_number(double value, int digits)
{
    const double size = std::abs(value);
    return size >= 1e4 && size < 1e6   ? fmt::format("{:.{}g}k", value / 1e3, digits)
           : size >= 1e6 && size < 1e9 ? fmt::format("{:.{}g}M", value / 1e6, digits)
           : size >= 1e3 && size < 1e4 ? fmt::format("{:.{}g}", value, digits + 1)
                                       : fmt::format("{:.{}g}", value == 0 ? 0 : value, digits);
}

} // namespace

bool is_flat(const Range& range)
{
    const double span = range.high - range.low;
    const double least = 1e-12 * std::max(std::abs(range.low), std::abs(range.high));
    return !(span > least) || !std::isfinite(span);
}

std::string short_number(double value)
{
    return short_number(value, 3);
}

std::vector<std::string> short_numbers(const std::vector<double>& values)
{
    std::vector<std::string> texts;
    for (int digits = 3; digits <= k_most_digits; ++digits) {
        texts.clear();
        for (const double value : values) {
            texts.push_back(short_number(value, digits));
        }
        bool all_differ = true;
        for (std::size_t i = 1; i < values.size(); ++i) {
            all_differ = all_differ && (values[i] == values[i - 1] || texts[i] != texts[i - 1]);
        }
        if (all_differ) {
            break;
        }
    }
    return texts;
}

std::vector<double> ticks(const Range& range, int most)
{
    if (is_flat(range) || most < 1) {
        return {range.low};
    }
    const double span = range.high - range.low;
    double step = std::pow(10, std::floor(std::log10(span / most)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
        if (span / (step * factor) <= most) {
            step *= factor;
            break;
        }
    }
    std::vector<double> found;
    for (double mark = std::ceil(range.low / step - 1e-9); mark * step <= range.high + step * 1e-9;
         ++mark) {
        found.push_back(mark * step + 0.0); // never -0
    }
    return found;
}

std::vector<double> log_ticks(const Range& range, int most)
{
    std::vector<double> decades;
    for (double power = std::floor(std::log10(range.low)); power <= std::log10(range.high);
         ++power) {
        const double tick = std::pow(10, power);
        if (tick >= range.low && tick <= range.high) {
            decades.push_back(tick);
        }
    }
    if (decades.size() < 2) {
        return ticks(range, most);
    }
    const auto every = (decades.size() + static_cast<std::size_t>(most) - 1) /
                       static_cast<std::size_t>(std::max(most, 1));
    std::vector<double> kept;
    for (std::size_t i = 0; i < decades.size(); i += std::max<std::size_t>(every, 1)) {
        kept.push_back(decades[i]);
    }
    return kept;
}

int most_ticks_down(int rows)
{
    return std::max(2, rows / k_rows_per_tick);
}

int most_ticks_across(int columns)
{
    return std::max(2, columns / k_columns_per_tick);
}

Rect within_axes(const Rect& area, const std::vector<AxisMark>& down)
{
    const int left = static_cast<int>(gutter_of(down)) + 1;
    return {area.top, area.left + left, area.height - k_rows_below, area.width - left};
}

Rect draw_axes(Canvas& canvas, const Rect& area, const std::vector<AxisMark>& down,
               const std::vector<AxisMark>& across, const Theme& theme)
{
    const bool ascii = theme.ascii;
    const std::size_t gutter = gutter_of(down);
    const Rect inner = within_axes(area, down);
    for (int row = 0; row < inner.height; ++row) {
        canvas.put(inner.top + row, inner.left - 1, ascii ? "|" : "│", dim());
    }
    for (const AxisMark& mark : down) {
        if (mark.share >= 0 && mark.share <= 1) {
            const int row =
                inner.top + static_cast<int>(std::lround((1 - mark.share) * (inner.height - 1)));
            canvas.put(row, area.left, std::string(gutter - cells(mark.text), ' ') + mark.text,
                       dim());
            canvas.put(row, inner.left - 1, ascii ? "+" : "┤", dim());
        }
    }
    const int bottom = inner.bottom() + 1;
    canvas.put(bottom, inner.left - 1, ascii ? "+" : "└", dim());
    for (int column = 0; column < inner.width; ++column) {
        canvas.put(bottom, inner.left + column, ascii ? "-" : "─", dim());
    }
    int used = inner.left;
    for (const AxisMark& mark : across) {
        const int place =
            inner.left + static_cast<int>(std::lround(mark.share * (inner.width - 1)));
        const int width = static_cast<int>(cells(mark.text));
        const int begin = std::clamp(place - width / 2, inner.left,
                                     std::max(inner.left, inner.left + inner.width - width));
        canvas.put(bottom, place, ascii ? "+" : "┬", dim());
        if (begin >= used && begin + width <= inner.left + inner.width) {
            canvas.put(bottom + 1, begin, mark.text, dim());
            used = begin + width + 2;
        }
    }
    return inner;
}

} // namespace gpuq::tui
