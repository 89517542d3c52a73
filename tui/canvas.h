// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What is drawn, as values: nothing here knows a terminal.
namespace gpuq::tui {

/// How a character looks. Colours are the 16 of a terminal's own theme; unset: its usual ones.
struct Style {
    std::optional<std::uint8_t> fg, bg;
    bool bold = false;
    bool dim = false;
    bool underline = false;
    bool reverse = false;
    bool operator==(const Style&) const = default;
};

/// On a light background yellow and white letters can't be read: bold ones and usual ones in their
/// place. As report::Look::light has it, for what programs print too.
Style for_light(Style style);

/// A piece of a line; the text is sanitised (core/sanitise.h).
struct Span {
    std::string text;
    Style style;
    bool operator==(const Span&) const = default;
};
using Line = std::vector<Span>;

std::string text_of(const Line& line);
/// The rows of so many cells that a long line takes; one of an empty line.
std::vector<Line> folded(const Line& line, int columns);

/// A grid of cells. What does not fit is cut; positions outside take nothing.
class Canvas {
public:
    struct Cell {
        std::string glyph = " "; ///< empty: the right half of the wide one before it
        Style style;
        bool operator==(const Cell&) const = default;
    };

    Canvas(int rows, int columns);
    int rows() const { return m_rows; }
    int columns() const { return m_columns; }
    const Cell& at(int row, int column) const;

    /// Draws from `column` on, at most `width` cells; gives the column after the last one.
    int put(int row, int column, const Line& line, int width);
    int put(int row, int column, std::string_view sanitised_text, Style style = {});
    /// One style over a whole row, also where nothing stands.
    void tint(int row, const Style& style);

    /// The characters alone, a line for each row, without blanks at their ends.
    std::string text() const;

    bool operator==(const Canvas&) const = default;

private:
    bool is_inside(int row, int column) const;

    int m_rows, m_columns;
    std::vector<Cell> m_cells;
};

} // namespace gpuq::tui
