// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/table.h"
#include "tui/model.h"

#include <optional>
#include <vector>

/// The columns of the list of runs. Pure.
namespace gpuq::tui {

/// Those in a panel of this width. The table drops more of them if their cells are too wide.
std::vector<report::Column> list_columns(int width);
/// The cells of a run in them. `depth`: how far its name is indented.
std::vector<report::Cell> list_cells(const Model& model, const RunRow& run, int width,
                                     std::size_t depth);

/// The details of a run; null if they have not been read.
const Detail* detail_of(const Model& model, const RunRow& run);
/// The best value of a sweep; nothing before there is one.
std::optional<double> best_of(const Sweep& sweep);

} // namespace gpuq::tui
