// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <vector>

/// The facts of the selected run, with its progress, small curves and, where rows are left, its
/// timeline. Pure.
namespace gpuq::tui {

std::vector<Line> fact_lines(const Model& model, const RunRow& run, int columns);
/// How many rows of the tab the facts have.
int room_for_facts(const Model& model, const Rect& area);
/// Complete if all of them fit above the curves, or the user scrolls; else the first ones and the
/// number of the others.
void draw_facts(Canvas& canvas, const Rect& area, const Model& model, const RunRow& run);

/// As wide as possible while each of them has its rows; then as high as possible. Returns the
/// number of rows used.
int draw_small_curves(Canvas& canvas, const Rect& area, const std::vector<Curve>& curves,
                      const Theme& theme);

} // namespace gpuq::tui
