// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Quotes `word` for a POSIX shell so that the shell reads it as a single argument, byte for byte.
/// An argument of letters, digits and `_-./:=,+@%` needs no quotes. `word` must not contain NUL (no
/// argument can).
std::string shell_quoted(std::string_view word);

/// The quoted arguments, joined by blanks.
std::string shell_command(const std::vector<std::string>& arguments);

} // namespace gpuq
