// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// `text` as a terminal may be shown it, on one line. Everything that came from outside (names,
/// paths, Slurm's words, lines of output) passes through here on its way to a screen, and nowhere
/// else: what is stored stays as it was.
///
/// C0 and DEL become `^J`, C1 controls and everything invisible or reordering (bidi controls, line
/// and paragraph separators, zero-width characters, variation selectors) `\u{202e}`, bytes that are
/// not UTF-8 (overlong forms and surrogates too) `\x9b`. A combining mark without a base, or the
/// fifth on one base, is written `\u{301}`. Text without any of these comes back unchanged.
std::string sanitised(std::string_view text);

/// Where the first bytes are that are not UTF-8 (overlong forms and surrogates neither); nothing:
/// all are.
std::optional<std::size_t> first_not_utf8(std::string_view text);

/// Width of sanitised text in terminal cells: two for wide characters, none for combining marks.
std::size_t cells(std::string_view sanitised_text);

/// Takes the first character off sanitised text, with the marks that stand on it.
std::string_view take_glyph(std::string_view& sanitised_text);

/// The beginning of sanitised text, at most `width` cells, `…` at the end when something is gone.
std::string clipped(std::string_view sanitised_text, std::size_t width);

} // namespace gpuq
