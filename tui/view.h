// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/canvas.h"
#include "tui/model.h"

namespace gpuq::tui {

/// Draws the model into a grid of its size. Pure; takes the model by reference only to keep what
/// is selected within what is shown.
Canvas view(Model& model);

} // namespace gpuq::tui
