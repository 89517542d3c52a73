// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace gpuq::cli {

/// Describes the reader of stderr during its lifetime: a user at another machine, whose command for
/// gpuq on this host is `called` (`gpuq --host login1`; empty: gpuq), followed by one of `verbs`.
/// `wrote` receives the number of bytes that gpuq itself has written to stderr. Applies to the
/// whole process, as stderr does; one at a time.
class Audience {
public:
    Audience(std::string called, Verbs verbs, std::function<void(std::size_t bytes)> wrote);
    ~Audience();
    Audience(const Audience&) = delete;
    Audience& operator=(const Audience&) = delete;
};

/// A suggested command as the user must type it on their machine: `gpuq attach 8` becomes `gpuq
/// --host login1 attach 8`. To be applied to every line for users.
std::string as_typed(std::string_view text);
/// The same for a user whose command for gpuq is `called`. Changes only a `gpuq` that is followed
/// by a verb.
std::string as_typed(std::string_view text, std::string_view called, Verbs verbs);

enum class Cursor {
    line_start,
    middle,
    raw,          ///< anywhere, on a terminal in raw mode (raw_terminal.h)
    other_screen, ///< the same, with a screen drawn by a program: nothing may scroll
};

/// Prints one line of gpuq's own to stderr, sanitised, with the prefix `gpuq: `. If the terminal's
/// cursor is in the middle of the program's line, begins a new line; over a full-screen program,
/// uses the last row until the program redraws it.
void print_message(std::string_view text, Cursor cursor = Cursor::line_start);

/// Shows the message in the last row of a terminal, as over a full-screen program.
void show_in_last_row(int terminal, std::string_view text);

/// The same as print_message for a message that --quiet suppresses.
void print_note(bool is_quiet, std::string_view text);

/// Writes bytes of gpuq's own to stderr, unchanged and in one write; errors are ignored.
void write_own(std::string_view bytes);

} // namespace gpuq::cli
