// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/canvas.h"
#include "tui/model.h"

namespace gpuq::tui {

/// Draws the model into a grid of its size. Pure, except that it adjusts the model's first row, so
/// that the selected run is among those shown.
Canvas view(Model& model);

} // namespace gpuq::tui
