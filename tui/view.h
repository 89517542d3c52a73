// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/base/canvas.h"
#include "tui/model.h"

namespace gpuq::tui {

/// Draws the model into a grid of its size. Pure.
Canvas view(const Model& model);

} // namespace gpuq::tui
