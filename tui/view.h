// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/canvas.h"
#include "tui/model.h"

namespace gpuq::tui {

/// Draws the model into a grid of its size. Pure.
Canvas view(const Model& model);

/// The first row of the list of runs to show: the model's own if the selected run is then among the
/// rows shown, else the nearest with which it is. To be kept in the model after each change.
std::size_t first_row_shown(const Model& model);

} // namespace gpuq::tui
