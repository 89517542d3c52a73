// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

/// Every verb of this version, in the order of help.
std::span<const Verb* const> verbs();

/// Options that every verb accepts, before or after its name.
std::span<const Option> global_options();

/// Names that the contract reserves for later versions.
std::span<const std::string_view> reserved_verbs();

/// The row of a verb, or null.
const Verb* find_verb(std::string_view name);

/// The `usage` error for a name that is reserved, or unknown (with the nearest name).
Error no_such_verb(std::string_view name);

/// The verb's own options and the global ones, as one table for the parser and completion.
std::vector<Option> all_options(const Verb& verb);

} // namespace gpuq::cli
