// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The content of the screen as values, independent of a terminal.
namespace gpuq::tui {

/// A colour: 0 to 15 of the terminal's own theme, or this bit and 0xRRGGBB.
constexpr std::uint32_t k_rgb = 1U << 24U;

/// The style of a character. An unset colour is the terminal's default.
struct Style {
    std::optional<std::uint32_t> fg, bg;
    bool bold = false;
    bool dim = false;
    bool underline = false;
    bool reverse = false;
    bool operator==(const Style&) const = default;
};

/// For a light background, on which yellow and white letters are unreadable: replaces them by bold
/// ones and default ones, as report::Look::light does. Also for program output.
Style for_light(Style style);

/// A part of a line; the text is sanitised (term/sanitise.h).
struct Span {
    std::string text;
    Style style;
    bool operator==(const Span&) const = default;
};
using Line = std::vector<Span>;

/// A line of one span; an empty line for an empty text.
Line line_of(std::string text, const Style& style = {});

std::string text_of(const Line& line);
/// The rows of `columns` cells that a long line is wrapped into; one for an empty line.
std::vector<Line> folded(const Line& line, int columns);

/// A part of the screen.
struct Rect {
    int top = 0, left = 0, height = 0, width = 0;
    int bottom() const { return top + height - 1; } ///< its last row
    bool has(int row, int column) const
    {
        return row >= top && row < top + height && column >= left && column < left + width;
    }
    bool operator==(const Rect&) const = default;
};

/// A grid of cells. Text that does not fit is cut; positions outside are ignored.
class Canvas {
public:
    struct Cell {
        std::string glyph = " "; ///< empty: the right half of a wide one before it
        Style style;
        bool operator==(const Cell&) const = default;
    };

    Canvas(int rows, int columns);
    int rows() const { return m_rows; }
    int columns() const { return m_columns; }
    const Cell& at(int row, int column) const;

    /// Draws from `column` on, at most `width` cells; returns the column after the last one.
    int put(int row, int column, const Line& line, int width);
    int put(int row, int column, std::string_view sanitised_text, Style style = {});
    /// Draws lines from `first` on, as many as the area has rows.
    void put_lines(const Rect& area, const std::vector<Line>& lines, int first);
    /// Sets the style of a part of a row, including empty cells.
    void tint(int row, int column, int width, const Style& style);

    /// The characters only, one line per row, without trailing blanks.
    std::string text() const;

    bool operator==(const Canvas&) const = default;

private:
    bool is_inside(int row, int column) const;
    Cell& cell(int row, int column);

    int m_rows, m_columns;
    std::vector<Cell> m_cells;
};

} // namespace gpuq::tui
