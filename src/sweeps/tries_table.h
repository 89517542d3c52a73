// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "sweeps/parameters.h"

#include <string>
#include <string_view>
#include <vector>

/// Reads a user's table of tries (`gpuq sweep --from`). Pure.
namespace gpuq::sweeps {

struct TriesTable {
    std::vector<std::string> names; ///< of the parameters
    std::vector<Values> tries;
};

/// A text whose first character is `{`: JSON lines, each an object with the same names and with
/// texts, numbers or truth values. Otherwise CSV (RFC 4180) with the names in its first line.
/// `usage` with `file` and line.
Result<TriesTable> parse_tries(std::string_view text, const std::string& file);

} // namespace gpuq::sweeps
