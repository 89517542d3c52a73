// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "sweeps/board.h"
#include "sweeps/records.h"
#include "sweeps/tries_table.h"

#include <string>
#include <string_view>
#include <vector>

/// The texts between gpuq and the program that proposes tries (`--propose`). Pure.
namespace gpuq::sweeps {

/// Its input: a JSON object for each try, in the order of their numbers: `try`, `state`, `values`,
/// `end`, `status`, `best`, `best_step` and `last`, as in `gpuq show --json`.
std::string results_text(const Sweep& sweep, const std::vector<Try>& tries);

/// Its output: JSON lines with the parameters of the sweep, in any order. None: it proposes
/// nothing. At most `most`, the first ones. `usage`.
Result<std::vector<Values>> proposals_in(std::string_view text,
                                         const std::vector<std::string>& names, std::size_t most);

/// The tries of a table with the values in the order of `names`. `usage`: the table has other
/// names.
Result<std::vector<Values>> ordered(const TriesTable& table, const std::vector<std::string>& names);

} // namespace gpuq::sweeps
