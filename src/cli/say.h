// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

namespace gpuq::cli {

enum class Cursor {
    line_start,
    middle,
    raw,          ///< anywhere on a terminal that does nothing by itself (raw_terminal.h)
    other_screen, ///< the same, and a full-screen program has drawn it: nothing may scroll
};

/// gpuq's own words: one line on stderr, `gpuq: ` in front, sanitised. On a terminal whose cursor
/// stands in the middle of the program's line, on a line of its own; over a full-screen program, in
/// the last row until that is drawn anew.
void say(std::string_view text, Cursor cursor = Cursor::line_start);

} // namespace gpuq::cli
