// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/log_text.h"
#include "tui/picture.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// The full-screen view as values: what is shown, what comes in, what is to be done.
namespace gpuq::tui {

// What comes in.

/// A key: a character as typed, or one of these.
enum class Special {
    none,
    up,
    down,
    page_up,
    page_down,
    home,
    end,
    enter,
    escape,
    backspace,
    left,
    right,
    erase
};
struct Key {
    Special special = Special::none;
    char32_t character = 0; ///< 1 to 26: with Ctrl
};
struct Resized {
    int rows = 24, columns = 80;
};
struct Tick {
    Time now;
};
struct Looked {
    Picture picture;
};
struct LookedCloser {
    Detail detail;
};
/// Of the log that is open: bytes that come after those before, or a new beginning.
struct LogBytes {
    std::string key;
    Stream stream = Stream::out;
    std::string bytes;
    bool anew = false;         ///< what was shown is to be forgotten
    std::uint64_t skipped = 0; ///< bytes of the file before the first that is shown
    std::string trouble;       ///< why there are none
    std::string note{};        ///< with `anew`: what has happened to the file
};
/// A command has ended; its last words.
struct Done {
    std::string words;
    bool failed = false;
};
/// What `typed` would be: the words of `gpuq run --dry-run`.
struct Tried {
    std::string typed;
    Done done;
};
using Message = std::variant<Key, Resized, Tick, Looked, LookedCloser, LogBytes, Done, Tried>;

// What is to be done, by somebody else.

struct Quit {};
/// Something else has written on the terminal.
struct Redraw {};
/// Ask Slurm and the disk again, as soon as that may be.
struct Refresh {};
struct OpenLog {
    std::string key;
    Stream stream = Stream::out;
};
struct CloseLog {};
/// A gpuq command, the program's name left out.
struct Command {
    std::vector<std::string> words;
    bool on_terminal = false; ///< it takes the whole terminal until it ends
    bool to_pager = false;    ///< and what it prints is for $PAGER
    bool operator==(const Command&) const = default;
};
/// What a run as typed would be, while it is being typed: nothing is started.
struct Try {
    std::string typed;
    std::vector<std::string> words; ///< of the command
};
/// Into the clipboard of the person's terminal.
struct Copy {
    std::string text;
};
using Effect = std::variant<Quit, Redraw, Refresh, OpenLog, CloseLog, Command, Try, Copy>;

// What is shown.

struct OpenedLog {
    std::string key, id, name; ///< of the run
    Stream stream = Stream::out;
    LogText text;
    std::uint64_t skipped = 0; ///< bytes of the file before the first that has come
    std::uint64_t bytes = 0;   ///< of the file, about: as far as it has come
    std::string trouble;
    bool follow = true;
    bool wrap = true;
    std::string note;        ///< what has happened to the file
    std::size_t top = 0;     ///< the first line shown, while it does not follow
    std::size_t top_row = 0; ///< which of the rows that it is folded into
    bool behind = false;     ///< there is more, which is not shown since what is to stay would go
};

/// A question about something that can't be undone.
struct Question {
    std::string text;
    Command command; ///< on `y`
};

/// A line that is being typed.
struct Prompt {
    enum class Purpose { search, filter, extend, exempt, start } purpose = Purpose::search;
    std::string label, typed;
    std::string key_of_run; ///< of the run that `extend` or `exempt` is about
    Done answer;            ///< what a run that is started so would be; empty: not known yet
    std::size_t cursor = 0; ///< in `typed`, before which byte the next character goes
};

struct Model {
    Resized size;
    Time now{};
    bool ascii = false;             ///< the terminal shows nothing else
    std::optional<Picture> whole;   ///< with all runs
    std::optional<Picture> picture; ///< with those that `filter` leaves
    std::string filter;             ///< letters that are in the line of a run that is shown
    std::optional<Detail> detail;   ///< of a run that may no longer be the selected one
    std::string selected;           ///< key of a run
    std::size_t first_row = 0;
    /// Since a run was started from here: the keys of all that there were. One that is not among
    /// them is selected.
    std::optional<std::vector<std::string>> before_start;
    std::optional<OpenedLog> log;
    std::optional<Question> question;
    std::optional<Prompt> prompt;
    bool help = false;
    int help_row = 0;  ///< the first key on this page of it
    std::string found; ///< what `n` looks for
    std::string words; ///< of the last command; lines
    bool failed = false;
    bool printed = false; ///< once, on paper as it were: all rows, and no keys
};

/// The run that is selected, of those that are shown; null without one.
const RunRow* selected_run(const Model& model);
/// The key of the run whose details are shown; empty while a log or the help covers them.
std::string run_in_detail(const Model& model);

} // namespace gpuq::tui
