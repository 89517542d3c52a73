// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "report/table.h"

#include <string_view>

namespace gpuq::cli {

/// Prints a table on stdout as --columns, --no-header, --color, the terminal's width, NO_COLOR and
/// TERM ask for. `usage` for an unknown column, `io` when stdout takes no bytes.
Result<void> print_table(const report::Table& table, const Globals& globals, Doors& doors);

/// Whether --color, NO_COLOR and TERM let what is printed on this terminal have colours.
bool wants_color(const Globals& globals, Doors& doors);

/// A line for a person, sanitised and with hints as they are typed (say.h). Errors of print_text.
Result<void> print_line(std::string_view text);

/// All of `text` to stdout; `io` with the reason. A reader that has left is no error.
Result<void> print_text(std::string_view text);

} // namespace gpuq::cli
