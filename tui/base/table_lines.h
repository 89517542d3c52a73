// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/table.h"
#include "tui/base/canvas.h"

#include <vector>

namespace gpuq::tui {

/// The lines of a table for `width` cells, its header first.
std::vector<Line> table_lines(const report::Table& table, int width);

/// Those of several tables, with an empty line after each.
std::vector<Line> table_lines(const std::vector<report::Table>& tables, int width);

} // namespace gpuq::tui
