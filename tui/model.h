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

/// The full-screen view as values: input, effects and state.
namespace gpuq::tui {

// Input.

/// A key: a typed character, or one of these.
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
struct PictureRead {
    Picture picture;
};
struct DetailRead {
    Detail detail;
};
/// Bytes of the open log, which continue it or replace it.
struct LogBytes {
    std::string key;
    Stream stream = Stream::out;
    std::string bytes;
    bool anew = false;         ///< the text shown so far is obsolete
    std::uint64_t skipped = 0; ///< bytes of the file before the first one shown
    std::string trouble;       ///< why there are none
    std::string note{};        ///< with `anew`: the change to the file
};
/// A command has ended; its last output.
struct Done {
    std::string message;
    bool failed = false;
};
/// The output of `gpuq run --dry-run` for `typed`.
struct Tried {
    std::string typed;
    Done done;
};
using Message = std::variant<Key, Resized, Tick, PictureRead, DetailRead, LogBytes, Done, Tried>;

// Effects, to be performed by the loop.

struct Quit {};
/// Another program has written to the terminal.
struct Redraw {};
/// Query Slurm and the disk again, as soon as permitted.
struct Refresh {};
struct OpenLog {
    std::string key;
    Stream stream = Stream::out;
};
struct CloseLog {};
/// A gpuq command, without the program's name.
struct Command {
    std::vector<std::string> arguments;
    bool on_terminal = false; ///< uses the whole terminal until it ends
    bool to_pager = false;    ///< and its output is for $PAGER
    bool operator==(const Command&) const = default;
};
/// Describe the run as typed so far, without starting it.
struct Try {
    std::string typed;
    std::vector<std::string> arguments; ///< of the command
};
/// Copy to the clipboard of the user's terminal.
struct Copy {
    std::string text;
};
using Effect = std::variant<Quit, Redraw, Refresh, OpenLog, CloseLog, Command, Try, Copy>;

// State.

struct OpenedLog {
    std::string key, id, name; ///< the run's
    Stream stream = Stream::out;
    LogText text;
    std::uint64_t skipped = 0; ///< bytes of the file before the first one received
    std::uint64_t bytes = 0;   ///< approximate size of the file so far
    std::string trouble;
    bool follow = true;
    bool wrap = true;
    std::string note;        ///< the change to the file
    std::size_t top = 0;     ///< first line shown, unless it follows
    std::size_t top_row = 0; ///< first row shown of that line, if wrapped
    bool behind = false;     ///< more output exists, not read so that the lines shown are kept
};

/// A question about an action that can't be undone.
struct Question {
    std::string text;
    Command command; ///< executed on `y`
};

/// A line being typed.
struct Prompt {
    enum class Purpose { search, filter, extend, exempt, start } purpose = Purpose::search;
    std::string label, typed;
    std::string key_of_run; ///< the run for `extend` and `exempt`
    Done answer;            ///< description of the run that would be started; empty: unknown
    std::size_t cursor = 0; ///< the byte of `typed` before which characters are inserted
};

struct Model {
    Resized size;
    Time now{};
    bool ascii = false;             ///< the terminal shows only ASCII
    std::optional<Picture> whole;   ///< with all runs
    std::optional<Picture> picture; ///< with the runs that match `filter`
    std::string filter;             ///< text contained in the rows of the runs shown
    std::optional<Detail> detail;   ///< its run may no longer be the selected one
    std::string selected;           ///< key of a run
    std::size_t first_row = 0;
    /// Set when a run is started from here: the keys of all runs before. One that is not among them
    /// is selected.
    std::optional<std::vector<std::string>> before_start;
    std::optional<OpenedLog> log;
    std::optional<Question> question;
    std::optional<Prompt> prompt;
    bool help = false;
    int help_row = 0;    ///< the first key on this page of it
    std::string found;   ///< text that `n` searches for
    std::string message; ///< output of the last command; lines
    bool failed = false;
    bool printed = false; ///< printed once: all rows, and no keys
};

/// The selected run among those shown; null without one.
const RunRow* selected_run(const Model& model);
/// The key of the run whose details are shown; empty while a log or the help covers them.
std::string run_in_detail(const Model& model);

} // namespace gpuq::tui
