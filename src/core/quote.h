// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// `word` for a POSIX shell: the shell reads it as this one word, byte for byte. A word needs no
/// quotes when it has only letters, digits and `_-./:=,+@%`. `word` has no NUL (no argument can).
std::string shell_quoted(std::string_view word);

/// The words quoted and joined by blanks.
std::string shell_command(const std::vector<std::string>& words);

} // namespace gpuq
