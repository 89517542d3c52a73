// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <vector>

/// The comparison of marked runs, which covers the panels. Pure.
namespace gpuq::tui {

void draw_comparison(Canvas& canvas, const Model& model);

/// The line of its tables that is the first one shown at their end.
int last_comparison_line(const Model& model);

} // namespace gpuq::tui
