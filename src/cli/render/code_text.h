// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Text and JSON of a snapshot. Pure.
namespace gpuq::cli {

/// The snapshot of the code of a run or sweep.
struct CodeFacts {
    std::string id, root, commit; ///< commit: empty: none
    /// Files that differed from the commit; nullopt: the repository no longer has it.
    std::optional<std::vector<std::string>> dirty;
    std::uint64_t files = 0;
    std::uint64_t left_out = 0;       ///< data or output
    std::vector<std::string> changed; ///< since then, or removed
};

/// Lines for users, not sanitised.
std::vector<std::string> code_lines(const CodeFacts& code);

/// For --json; null: none.
report::Json code_json(const std::optional<CodeFacts>& code);

} // namespace gpuq::cli
