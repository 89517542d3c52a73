// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Splits a line of arguments such as `--slurm='--exclude=n1 --comment="a b"'` at blanks. Quotes
/// and backslashes work as in a shell; nothing is expanded. `usage` for an unterminated quote or a
/// trailing backslash.
Result<std::vector<std::string>> split_arguments(std::string_view line);

/// The arguments as a null-terminated array for execve(2). Valid as long as `arguments` is
/// unchanged.
std::vector<char*> pointers(const std::vector<std::string>& arguments);

} // namespace gpuq
