// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <vector>

/// The comparison of marked runs, which covers the panels. Pure.
namespace gpuq::tui {

void draw_comparison(Canvas& canvas, const Rect& area, const Model& model);

/// Its tables.
std::vector<Line> lines_of_comparison(const Comparison& compared, int columns);

} // namespace gpuq::tui
