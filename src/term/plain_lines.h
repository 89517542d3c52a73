// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpuq {

/// The last `rows` lines (or fewer) of a program's terminal output as plain text: cursor movements
/// within a line are applied, all other control sequences dropped. At most 256 KiB: fewer lines if
/// these are longer than those of any terminal.
std::string plain_lines(std::string_view bytes, std::size_t rows);

} // namespace gpuq
