// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// The keys and their functions, for the help page, the line at the bottom and man gpuq-top(1).
namespace gpuq::tui {

/// Where a key has its function.
enum Where : std::uint16_t {
    k_in_gpus = 1,
    k_in_runs = 2,
    k_in_log = 4,
    k_in_curves = 8,
    k_in_text = 16, ///< the other tabs of the run
    k_in_comparison = 32,
    k_in_board = 64,    ///< the tries of a sweep
    k_in_form = 128,    ///< the form that starts a run
    k_in_try_log = 256, ///< the log of a try
    k_in_run = k_in_log | k_in_curves | k_in_text,
    k_in_logs = k_in_log | k_in_try_log,
    k_in_sweep = k_in_board | k_in_try_log,
    k_in_panels = k_in_gpus | k_in_runs | k_in_run | k_in_sweep,
    k_anywhere = k_in_panels | k_in_comparison
};

struct KeyRow {
    std::string_view keys;
    std::string_view does;
    std::string_view short_form; ///< for the bottom line; empty: not in it
    std::uint16_t where = k_anywhere;
};

inline constexpr std::array k_keys = {
    KeyRow{"Enter", "start the run", "Enter start", k_in_form},
    KeyRow{"Esc", "back", "Esc back", k_in_form},
    KeyRow{"Tab", "complete the word, or go to the next field", "Tab complete", k_in_form},
    KeyRow{"Up Down", "previous or next field", "Down next", k_in_form},
    KeyRow{"F5", "ask again what would be started", "F5 ask again", k_in_form},
    KeyRow{"Tab Shift-Tab", "next or previous panel; on the whole screen, tab", "Tab panel",
           k_in_gpus | k_in_runs},
    KeyRow{"Enter", "the run on the whole screen, or the tries of the sweep", "Enter open",
           k_in_gpus | k_in_runs},
    KeyRow{"Esc", "back", "Esc back", k_in_run | k_in_comparison | k_in_sweep},
    KeyRow{"Enter", "the log of the try", "Enter log", k_in_board},
    KeyRow{"[ ]", "plot another parameter", "[ ] parameter", k_in_board},
    KeyRow{"Space", "mark the try, or remove the mark", "Space mark", k_in_board},
    KeyRow{"c", "compare the marked tries: curves, parameters that differ", "c compare",
           k_in_board},
    KeyRow{"x", "stop the try, or all marked ones, after confirmation", "x stop", k_in_sweep},
    KeyRow{"X", "stop the whole sweep, after confirmation", "X stop all", k_in_sweep},
    KeyRow{"o O", "sort by metric, number or GPU time; reverse the order", "o sort", k_in_board},
    KeyRow{"[ ]", "previous or next tab of the run", "[ ] tab", k_in_run},
    KeyRow{"[ ]", "the log of the try before or after it", "[ ] try", k_in_try_log},
    KeyRow{"/ n N", "search the log; next or previous match", "/ search", k_in_logs},
    KeyRow{"o", "its stdout or its stderr", "o stderr", k_in_log},
    KeyRow{"f", "follow the log's end, or stay", "f follow", k_in_logs},
    KeyRow{"e E", "next or previous error or traceback", "e error", k_in_logs},
    KeyRow{"w", "wrap long lines, or truncate them", "w wrap", k_in_logs},
    KeyRow{"t", "when each line was written, or not", "t times", k_in_log},
    KeyRow{"p", "the whole log in $PAGER", "p pager", k_in_runs | k_in_run | k_in_sweep},
    KeyRow{"Enter", "only the selected chart, or all of them", "Enter one", k_in_curves},
    KeyRow{"Space", "choose the chart: Enter shows all chosen ones in one", "", k_in_curves},
    KeyRow{"L", "logarithmic or linear scale", "L log", k_in_curves | k_in_comparison | k_in_board},
    KeyRow{"m", "smooth more, or not at all", "m smooth", k_in_curves | k_in_comparison},
    KeyRow{"t", "over time or over steps", "t time", k_in_curves | k_in_comparison},
    KeyRow{"z Z", "zoom in at the cursor, zoom out", "z zoom", k_in_curves | k_in_comparison},
    KeyRow{"< >", "move the visible part", "", k_in_curves | k_in_comparison},
    KeyRow{"0", "the whole curve, without a cursor", "", k_in_curves | k_in_comparison},
    KeyRow{"/", "only the runs with these letters; Esc: all", "/ filter", k_in_runs},
    KeyRow{"/", "the runs, only those with the letters that you type", "",
           k_in_gpus | k_in_curves | k_in_text | k_in_board},
    KeyRow{"a", "attach to the run", "a attach", k_in_runs | k_in_run},
    KeyRow{"x", "stop the run or sweep, or all marked ones, after confirmation", "x stop",
           k_in_runs | k_in_run},
    KeyRow{"+", "start another run", "+ new", k_in_panels},
    KeyRow{"A", "start the run again, with its arguments to edit", "A again", k_in_runs | k_in_run},
    KeyRow{"Space", "mark the run, or remove the mark", "Space mark", k_in_runs},
    KeyRow{"c", "compare the marked runs", "c compare", k_in_runs},
    KeyRow{"o O", "sort by something else; reverse the order", "o sort", k_in_runs},
    KeyRow{"Left Right", "hide or show the workers of a sweep", "", k_in_runs},
    KeyRow{"b", "group by name, without a number at its end", "", k_in_runs},
    KeyRow{"z", "hide or show the runs that have ended", "", k_in_runs},
    KeyRow{"e", "more time for the run", "e extend", k_in_runs | k_in_curves | k_in_text},
    KeyRow{"s S", "save and stop, after confirmation, or only save; also all marked runs", "",
           k_in_runs | k_in_run},
    KeyRow{"i", "let the run keep idle GPUs; asks for a reason", "", k_in_runs | k_in_run},
    KeyRow{"v", "all details of the run, sweep or try, in $PAGER", "",
           k_in_runs | k_in_run | k_in_sweep},
    KeyRow{":", "a gpuq command; Tab completes", ": command", k_in_panels},
    KeyRow{"y", "copy the command that shows the same", "", k_in_runs | k_in_run | k_in_sweep},
    KeyRow{"j k Up Down", "next or previous run, GPU, try, chart or line", ""},
    KeyRow{"h l Left Right", "a GPU to the left or right; in a chart, the cursor", "",
           k_in_gpus | k_in_curves | k_in_comparison},
    KeyRow{"g G", "first or last; in a log G resumes following", "", k_in_panels},
    KeyRow{"Ctrl-D Ctrl-U", "half a screen down, up", ""},
    KeyRow{"F", "this panel on the whole screen, or all panels", "", k_in_panels},
    KeyRow{"1 2 3", "the panel of GPUs, of runs, of the selected run", "", k_in_panels},
    KeyRow{"r F5 Ctrl-L", "refresh; Ctrl-L redraws the screen", ""},
    KeyRow{"?", "the keys of this panel", "? help"},
    KeyRow{"q Ctrl-C", "quit; runs are not affected", "q quit"},
};

/// How many of them fit on a page of help, below the title and above the bottom line.
constexpr int rows_of_help(int rows)
{
    return rows > 3 ? rows - 2 : 1;
}

} // namespace gpuq::tui
