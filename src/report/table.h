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

    std::string name;  ///< what --columns calls it: `job`
    std::string title; ///< what the header says: `JOB`
    Align align = Align::left;
    Shrink shrink = Shrink::no; ///< may be cut on a narrow screen, `first` before the others; an id
                                ///< never may
    int drop = 0; ///< left out on a screen still too narrow, the highest number first; 0: never
    Show show = Show::always; ///< on_request: only where --columns names it
};

/// A cell: any text (sanitised when drawn), and what a colour may say about it.
struct Cell {
    enum class Tone { plain, good, warning, bad, dim };
    std::string text;
    Tone tone = Tone::plain;

    Cell(std::string words, Tone meaning = Tone::plain)
        : text(std::move(words))
        , tone(meaning)
    {
    }
    Cell(const char* words)
        : text(words)
    {
    }
};

/// Rows below columns. Every row has one cell per column.
struct Table {
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows;
};

/// How a table is to be drawn.
struct Look {
    bool header = true;
    bool color = false;
    bool light = false; ///< background, on which yellow can't be read: bold in its place
    std::optional<std::size_t> width; ///< of the terminal, in cells; unset: as wide as need be
};

/// Whether COLORFGBG (`0;15`: the numbers of letters and background, as rxvt and Konsole set it)
/// tells of a light background.
bool is_light(std::string_view colorfgbg);

/// The table with only the columns named in `names` (`job,name,state`), in that order, none of them
/// to be dropped; those that are always shown when `names` is empty. `usage` names an unknown
/// column and those that exist.
Result<Table> only(const Table& table, std::string_view names);

/// Lines of aligned columns, two blanks between them, no blanks at their ends. On a screen too
/// narrow, columns that may shrink are cut, the first ones to half a name, then the widest; when
/// that is not enough, those that may be dropped are; the others never are.
std::string to_text(const Table& table, const Look& look);

} // namespace gpuq::report
