// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <string_view>

/// Editing of a line being typed. Pure.
namespace gpuq::tui {

/// Any key other than Enter and Esc.
void edit(Prompt& prompt, const Key& key);
/// Inserts text at the cursor: on one line, with blanks in place of control characters.
void insert(Prompt& prompt, std::u32string_view text);

} // namespace gpuq::tui
