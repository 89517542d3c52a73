// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <cstddef>
#include <string_view>

/// The open log in an area of the screen: drawing, scrolling and searching. Pure.
namespace gpuq::tui {

/// The first row is a title; the area has at least one row.
void draw_log(Canvas& canvas, const Rect& area, const OpenedLog& log, std::string_view found);
/// The title in at most `columns` cells, and the rest of the area.
Line title_of_log(const OpenedLog& log, int columns);
void draw_log_lines(Canvas& canvas, const Rect& area, const OpenedLog& log, std::string_view found);

/// Scrolls by rows; stops at both ends.
void scroll_log(OpenedLog& log, const Rect& area, int rows);
/// Whether the last line is shown.
bool is_at_end(const OpenedLog& log, const Rect& area);
/// Shows the beginning.
void show_begin(OpenedLog& log);
/// Stops following, and keeps the lines shown.
void hold(OpenedLog& log, const Rect& area);

/// Goes to the next line that `matches`; while following the end, to the newest one. False if there
/// is none. `text`: marks the row of a wrapped line that contains it; may be empty.
bool search_log(OpenedLog& log, const Rect& area, bool forward, std::string_view text,
                bool (*matches)(std::string_view line, std::string_view text));

/// Whether a line reports an error: a Python traceback, an exception, CUDA, a killed process.
bool is_error_line(std::string_view line, std::string_view unused);

/// Takes in bytes that the reader of the log has found.
void take_bytes(OpenedLog& log, LogBytes& piece);

} // namespace gpuq::tui
