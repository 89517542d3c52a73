// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/curve.h"

#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpuq::tui {
namespace {

constexpr int k_dots_across = 2, k_dots_down = 4;
/// The dots of a braille cell by column and row, as Unicode numbers them (U+2800 and the bits).
constexpr unsigned k_dot[k_dots_across][k_dots_down] = {{0x01, 0x02, 0x04, 0x40},
                                                        {0x08, 0x10, 0x20, 0x80}};

std::string braille(unsigned dots)
{
    const unsigned point = 0x2800U + dots;
    return {static_cast<char>(0xe0U | point >> 12U),
            static_cast<char>(0x80U | (point >> 6U & 0x3fU)),
            static_cast<char>(0x80U | (point & 0x3fU))};
}

/// The values in one of `columns` columns, which the whole curve fills.
std::optional<Range> column(const Curve& curve, int at, int columns)
{
    const auto edge = [&](int column) {
        return static_cast<std::size_t>(column) * curve.values.size() /
               static_cast<std::size_t>(columns);
    };
    std::optional<Range> result;
    for (std::size_t i = edge(at); i < std::max(edge(at) + 1, edge(at + 1)); ++i) {
        const auto& value = curve.values[i];
        if (value && std::isfinite(*value)) {
            result = result ? Range{std::min(result->low, *value), std::max(result->high, *value)}
                            : Range{*value, *value};
        }
    }
    return result;
}

} // namespace

std::optional<Range> range_of(const Curve& curve)
{
    std::optional<Range> range;
    for (const auto& value : curve.values) {
        if (value && std::isfinite(*value)) {
            range = range ? Range{std::min(range->low, *value), std::max(range->high, *value)}
                          : Range{*value, *value};
        }
    }
    return range;
}

std::string short_number(double value)
{
    return fmt::format("{:.3g}", value);
}

void draw_curve(Canvas& canvas, int top, int left, int rows, int columns, const Curve& curve,
                bool ascii)
{
    const auto range = range_of(curve);
    const std::string unit = curve.unit.empty() ? "" : " " + curve.unit;
    const auto& newest = curve.values.empty() ? std::nullopt : curve.values.back();
    std::string title = sanitised(curve.title) + " ";
    title += newest ? short_number(*newest) + sanitised(unit) : "unknown";
    if (range) {
        title += fmt::format("  ({} to {})", short_number(range->low), short_number(range->high));
    }
    canvas.put(top, left,
               Line{{clipped(title, static_cast<std::size_t>(std::max(columns, 0))), {}}}, columns);
    const int height = rows - 1;
    if (!range || height < 1 || columns < 1) {
        return;
    }
    const int across = ascii ? columns : columns * k_dots_across;
    const int down = ascii ? height : height * k_dots_down;
    const Range scale = curve.unit == "%" ? Range{0, 100} : *range;
    const double span = scale.high > scale.low ? scale.high - scale.low : 1;
    const auto place = [&](double value) { // 0: the lowest dot
        return std::clamp(static_cast<int>((value - scale.low) / span * (down - 1) + 0.5), 0,
                          down - 1);
    };
    std::vector<unsigned> cells_of(static_cast<std::size_t>(height * columns), 0);
    for (int x = 0; x < across; ++x) {
        const auto values = column(curve, x, across);
        if (!values) {
            continue;
        }
        for (int y = place(values->low); y <= place(values->high); ++y) {
            const int from_top = down - 1 - y;
            const int row = ascii ? from_top : from_top / k_dots_down;
            const int cell = ascii ? x : x / k_dots_across;
            cells_of[static_cast<std::size_t>(row * columns + cell)] |=
                ascii ? 1U : k_dot[x % k_dots_across][from_top % k_dots_down];
        }
    }
    for (int row = 0; row < height; ++row) {
        for (int cell = 0; cell < columns; ++cell) {
            if (const unsigned dots = cells_of[static_cast<std::size_t>(row * columns + cell)]) {
                canvas.put(top + 1 + row, left + cell, ascii ? "*" : braille(dots));
            }
        }
    }
}

} // namespace gpuq::tui
