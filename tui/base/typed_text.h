// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/base/canvas.h"
#include "tui/base/key.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Editing of text being typed. Pure.
namespace gpuq::tui {

/// Text being typed.
struct TypedText {
    std::string typed;
    std::size_t cursor = 0; ///< the byte of `typed` before which characters are inserted
};

/// Any key other than Enter and Esc.
void edit(TypedText& text, const Key& key);
/// Inserts text at the cursor: on one line, with blanks in place of control characters.
void insert(TypedText& text, std::u32string_view inserted);

/// The words of a command line before the cursor, the last one incomplete, perhaps empty. Nothing
/// within the line, and within quotes.
std::optional<std::vector<std::string>> arguments_to_complete(const TypedText& line);
/// Replaces the last word of a line by the beginning that all proposals have in common, with a
/// blank after it if it is complete. False if that is not longer.
bool complete_word(TypedText& line, const std::vector<std::string>& proposals);
/// The same for text that is one word, with any characters in it.
bool complete_text(TypedText& text, const std::vector<std::string>& proposals);

/// The proposals to be shown: none if there is only one.
std::vector<std::string> several(std::vector<std::string> proposals);

/// The text behind a label, with its cursor in view.
Line typed_line(const std::string& label, const TypedText& text, int columns);

} // namespace gpuq::tui
