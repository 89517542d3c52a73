// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// Makes `text` safe to print on a terminal, on one line. Everything from outside (names, paths,
/// Slurm's messages, lines of output) is sanitised here when it is displayed, and only then: stored
/// data is unchanged.
///
/// C0 and DEL become `^J`; C1 controls and all invisible or reordering characters (bidi controls,
/// line and paragraph separators, zero-width characters, variation selectors) become `\u{202e}`;
/// bytes that are not UTF-8 (including overlong forms and surrogates) become `\x9b`. A combining
/// mark without a base, or beyond the fourth on one base, becomes `\u{301}`. Other text is returned
/// unchanged.
std::string sanitised(std::string_view text);

/// Offset of the first byte that is not valid UTF-8 (overlong forms and surrogates are invalid);
/// nullopt when all of `text` is valid.
std::optional<std::size_t> first_not_utf8(std::string_view text);

/// Width of sanitised text in terminal cells: two for wide characters, zero for combining marks.
std::size_t cells(std::string_view sanitised_text);

/// Removes and returns the first character of sanitised text, including its combining marks.
std::string_view take_glyph(std::string_view& sanitised_text);

/// Truncates sanitised text to at most `width` cells, with `…` at the end if anything was cut.
std::string clipped(std::string_view sanitised_text, std::size_t width);

} // namespace gpuq
