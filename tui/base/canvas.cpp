// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/canvas.h"

#include "term/sanitise.h"

#include <algorithm>
#include <cassert>

namespace gpuq::tui {

Style for_light(Style style)
{
    constexpr int k_yellow = 3, k_white = 7;
    const bool is_basic = style.fg && (*style.fg & k_rgb) == 0 && !style.bg;
    const int colour = is_basic ? static_cast<int>(*style.fg % 8) : -1;
    if (colour == k_yellow || colour == k_white) {
        style.fg.reset();
        style.bold = style.bold || colour == k_yellow;
    }
    return style;
}

Line line_of(std::string text, const Style& style)
{
    Line line;
    if (!text.empty()) {
        line.push_back({std::move(text), style});
    }
    return line;
}

std::string text_of(const Line& line)
{
    std::string text;
    for (const Span& span : line) {
        text += span.text;
    }
    return text;
}

std::vector<Line> folded(const Line& line, int columns)
{
    std::vector<Line> parts(1);
    int used = 0;
    for (const Span& span : line) {
        std::string_view text = span.text;
        while (!text.empty()) {
            const std::string_view glyph = take_glyph(text);
            const int needed = static_cast<int>(cells(glyph));
            if (used + needed > columns && used > 0) {
                parts.emplace_back();
                used = 0;
            }
            Line& part = parts.back();
            if (part.empty() || part.back().style != span.style) {
                part.push_back({"", span.style});
            }
            part.back().text += glyph;
            used += needed;
        }
    }
    return parts;
}

Canvas::Canvas(int rows, int columns)
    : m_rows(std::max(rows, 1))
    , m_columns(std::max(columns, 1))
    , m_cells(static_cast<std::size_t>(m_rows) * static_cast<std::size_t>(m_columns))
{
}

bool Canvas::is_inside(int row, int column) const
{
    return row >= 0 && row < m_rows && column >= 0 && column < m_columns;
}

Canvas::Cell& Canvas::cell(int row, int column)
{
    return m_cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(m_columns) +
                   static_cast<std::size_t>(column)];
}

const Canvas::Cell& Canvas::at(int row, int column) const
{
    assert(is_inside(row, column));
    return m_cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(m_columns) +
                   static_cast<std::size_t>(column)];
}

int Canvas::put(int row, int column, const Line& line, int width)
{
    const int end = std::min(m_columns, column + width);
    for (const Span& span : line) {
        std::string_view text = span.text;
        while (!text.empty()) {
            const std::string_view glyph = take_glyph(text);
            const int cells_needed = static_cast<int>(cells(glyph));
            if (!is_inside(row, column) || column + cells_needed > end) {
                return column;
            }
            if (column > 0 && cell(row, column).glyph.empty()) {
                cell(row, column - 1).glyph = " "; // half of it is overwritten
            }
            cell(row, column) = {std::string(glyph), span.style};
            for (int half = 1; half < cells_needed; ++half) {
                cell(row, column + half) = {"", span.style};
            }
            column += cells_needed;
            if (is_inside(row, column) && cell(row, column).glyph.empty()) {
                cell(row, column).glyph = " ";
            }
        }
    }
    return column;
}

int Canvas::put(int row, int column, std::string_view sanitised_text, Style style)
{
    return put(row, column, Line{{std::string(sanitised_text), style}}, m_columns);
}

void Canvas::put_lines(const Rect& area, const std::vector<Line>& lines, int first)
{
    for (int i = 0; i < area.height && first + i < static_cast<int>(lines.size()); ++i) {
        put(area.top + i, area.left, lines[static_cast<std::size_t>(first + i)], area.width);
    }
}

void Canvas::tint(int row, int column, int width, const Style& style)
{
    for (const int end = column + width; column < end && is_inside(row, column); ++column) {
        cell(row, column).style = style;
    }
}

std::string Canvas::text() const
{
    std::string text;
    for (int row = 0; row < m_rows; ++row) {
        std::string line;
        for (int column = 0; column < m_columns; ++column) {
            line += at(row, column).glyph;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

} // namespace gpuq::tui
