// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace gpuq::cli {

/// Who reads stderr, while this lives: somebody at another machine's keyboard, who calls gpuq
/// there `called` (`gpuq --host login1`; empty: gpuq); `wrote` hears how much of stderr is gpuq's
/// own. Of the whole process, as stderr is; one at a time.
class Audience {
public:
    Audience(std::string called, std::function<void(std::size_t bytes)> wrote);
    ~Audience();
    Audience(const Audience&) = delete;
    Audience& operator=(const Audience&) = delete;
};

/// What a person is told to type next, as it has to be typed where they sit: `gpuq attach 8`
/// becomes `gpuq --host login1 attach 8`. To be asked of every line for people.
std::string as_typed(std::string_view text);
/// The same, for somebody who calls gpuq `called`. Only what a verb of gpuq's follows is changed.
std::string as_typed(std::string_view text, std::string_view called);

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

/// gpuq's own on stderr, as it is: in one write, and nobody is to be told when it fails.
void write_own(std::string_view bytes);

} // namespace gpuq::cli
