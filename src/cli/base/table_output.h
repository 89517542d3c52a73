// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "report/table.h"

#include <string_view>

namespace gpuq::cli {

/// Prints a table to stdout according to --columns, --no-header, --color, the terminal's width,
/// NO_COLOR and TERM. `usage` for an unknown column, `io` if stdout can't be written.
Result<void> print_table(const report::Table& table, const Globals& globals, Services& services);

/// Whether --color, NO_COLOR and TERM allow colours in output to this terminal.
bool wants_color(const Globals& globals, Services& services);

/// Prints a line for users, sanitised, with suggested commands as they must be typed (message.h).
/// Errors as in print_text.
Result<void> print_line(std::string_view text);

/// Writes all of `text` to stdout; `io` with the reason. A closed pipe is not an error.
Result<void> print_text(std::string_view text);

} // namespace gpuq::cli
