// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <string_view>

namespace gpuq::tui {

/// The keys and their functions, for the help page, the line at the bottom and man gpuq-top(1).
struct KeyRow {
    std::string_view keys;
    std::string_view does;
    std::string_view short_form; ///< for the bottom line; empty: not in it
    bool in_log = false;
    bool in_list = false;
};

constexpr std::array k_keys = {
    KeyRow{"j k Up Down", "the next run, the one before; a line of the log", "", true, true},
    KeyRow{"g G", "the first, the last; in a log G follows it again", "", true, true},
    KeyRow{"Ctrl-D Ctrl-U", "half a screen down, up", "", true, true},
    KeyRow{"Enter l Tab", "the run's log; Tab there its stderr, then back", "Enter log", false,
           true},
    KeyRow{"o", "its stdout or its stderr", "o stderr", true, false},
    KeyRow{"f", "follow the log's end, or stay", "f follow", true, false},
    KeyRow{"w", "fold long lines, or cut them", "w wrap", true, false},
    KeyRow{"/", "only the runs with these letters; Esc: all", "/ filter", false, true},
    KeyRow{"/ n N", "search the log; the next place, the one before", "/ search", true, false},
    KeyRow{"p", "the whole log in $PAGER", "p pager", true, true},
    KeyRow{"a", "attach to the run", "a attach", false, true},
    KeyRow{"x", "stop the run, after a question", "x stop", false, true},
    KeyRow{"s S", "have it save and stop, after a question; save and go on", "", false, true},
    KeyRow{"e", "more time for the run", "e extend", false, true},
    KeyRow{"i", "let the run keep GPUs that lie idle, and say why", "", false, true},
    KeyRow{"+", "start another run", "+ new", false, true},
    KeyRow{"v", "all that is known of the run, in $PAGER", "", false, true},
    KeyRow{"y", "copy the command that shows the same", "", true, true},
    KeyRow{"r F5 Ctrl-L", "ask again; Ctrl-L draws all again", "", true, true},
    KeyRow{"?", "this page", "? help", true, true},
    KeyRow{"Esc", "back", "Esc back", true, false},
    KeyRow{"q Ctrl-C", "leave; no run is touched", "q quit", true, true},
};

/// How many of them fit on a page of help, below the title and above the bottom line.
constexpr int rows_of_help(int rows)
{
    return rows > 3 ? rows - 2 : 1;
}

} // namespace gpuq::tui
