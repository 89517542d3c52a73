// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// The words of a line such as `--slurm='--exclude=n1 --comment="a b"'`: blanks part them, quotes
/// and backslashes keep them together as in a shell, and nothing is ever expanded. `usage` for
/// a quote that is never closed or a backslash at the end.
Result<std::vector<std::string>> split_words(std::string_view line);

/// The words as execve(2) takes them, a null pointer at the end: as valid as `words` is unchanged.
std::vector<char*> pointers(const std::vector<std::string>& words);

} // namespace gpuq
