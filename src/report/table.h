// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::report {

struct Column {
    enum class Align { left, right };
    enum class Shrink { no, yes, first };
    enum class Show { always, on_request };
    enum class Cut { end, middle };

    std::string name;  ///< for --columns: `job`
    std::string title; ///< in the header: `JOB`
    Align align = Align::left;
    Shrink shrink = Shrink::no; ///< may be cut on a narrow screen, `first` before the others; ids
                                ///< never
    int drop = 0; ///< dropped on a screen still too narrow, the highest number first; 0: never
    Show show = Show::always; ///< on_request: only if --columns names it
    std::size_t least = 0;    ///< others are dropped before this one is cut to less; 0: any width
    Cut cut = Cut::end; ///< which part a narrow column leaves out; `middle`: of names, since those
                        ///< of a series differ at their ends
};

/// A cell: any text (sanitised when drawn), and a meaning that a colour may show.
struct Cell {
    enum class Tone { plain, good, warning, bad, dim, title };
    std::string text;
    Tone tone = Tone::plain;

    Cell(std::string content, Tone meaning = Tone::plain)
        : text(std::move(content))
        , tone(meaning)
    {
    }
    Cell(const char* content)
        : text(content)
    {
    }
};

/// Rows and columns. Every row has one cell per column.
struct Table {
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows;
};

/// How to draw a table.
struct TableStyle {
    bool header = true;
    bool color = false;
    bool light = false;               ///< background, on which yellow is unreadable: bold instead
    std::optional<std::size_t> width; ///< the terminal's, in cells; unset: no limit
};

/// Whether COLORFGBG (`0;15`: the numbers of foreground and background, as rxvt and Konsole set it)
/// indicates a light background.
bool is_light(std::string_view colorfgbg);

/// The table with only the columns in `names` (`job,name,state`), in that order, none of them to be
/// dropped; with empty `names` those that are always shown. `usage` names an unknown column and
/// those that exist.
Result<Table> only(const Table& table, std::string_view names);

/// A line of a table, sanitised, in parts with a tone each: cells, and the blanks between them.
using TableLine = std::vector<Cell>;

/// Lines of aligned columns, the header first, two blanks between columns, none at their ends. If
/// they are too wide for the screen, columns that may shrink are cut, first those marked `first`,
/// then the widest; if that is not enough, those that may be dropped are; the others never are.
std::vector<TableLine> lines_of(const Table& table, const TableStyle& style);

/// The same as text, a line end after each, with escape sequences if `style` has colours.
std::string to_text(const Table& table, const TableStyle& style);

} // namespace gpuq::report
