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
    KeyRow{"j k Up Down", "next or previous run; a line of the log", "", true, true},
    KeyRow{"g G", "first or last; in a log G resumes following", "", true, true},
    KeyRow{"Ctrl-D Ctrl-U", "half a screen down, up", "", true, true},
    KeyRow{"Enter l Tab", "the run's log; in it, Tab switches to stderr and back", "Enter log",
           false, true},
    KeyRow{"o", "its stdout or its stderr", "o stderr", true, false},
    KeyRow{"f", "follow the log's end, or stay", "f follow", true, false},
    KeyRow{"w", "wrap long lines, or truncate them", "w wrap", true, false},
    KeyRow{"/", "only the runs with these letters; Esc: all", "/ filter", false, true},
    KeyRow{"/ n N", "search the log; next or previous match", "/ search", true, false},
    KeyRow{"p", "the whole log in $PAGER", "p pager", true, true},
    KeyRow{"a", "attach to the run", "a attach", false, true},
    KeyRow{"x", "stop the run, after confirmation", "x stop", false, true},
    KeyRow{"s S", "save and stop, after confirmation; save and continue", "", false, true},
    KeyRow{"e", "more time for the run", "e extend", false, true},
    KeyRow{"i", "let the run keep idle GPUs; asks for a reason", "", false, true},
    KeyRow{"+", "start another run", "+ new", false, true},
    KeyRow{"v", "all details of the run, in $PAGER", "", false, true},
    KeyRow{"y", "copy the command that shows the same", "", true, true},
    KeyRow{"r F5 Ctrl-L", "refresh; Ctrl-L redraws the screen", "", true, true},
    KeyRow{"?", "this page", "? help", true, true},
    KeyRow{"Esc", "back", "Esc back", true, false},
    KeyRow{"q Ctrl-C", "quit; runs are not affected", "q quit", true, true},
};

/// How many of them fit on a page of help, below the title and above the bottom line.
constexpr int rows_of_help(int rows)
{
    return rows > 3 ? rows - 2 : 1;
}

} // namespace gpuq::tui
