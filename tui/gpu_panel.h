// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <string>
#include <vector>

/// The panel of GPUs: one cell per GPU, node by node, grouped by model; where these do not fit, one
/// letter per GPU; where these do not fit, a line of counts per model. Pure.
namespace gpuq::tui {

/// The number of lines that the GPUs need in `width` columns, if `most` are available.
int gpu_lines(const Model& model, int width, int most);

void draw_gpus(Canvas& canvas, const Rect& panel, const Model& model);

/// The number of a GPU among all of the picture at a position on the screen.
std::optional<std::size_t> gpu_at(const Model& model, const Rect& panel, int row, int column);
/// The GPU that is `right` cells to the right of the selected one and `down` lines below it, as
/// near as there is one.
std::size_t gpu_beside(const Model& model, const Rect& panel, int right, int down);

/// The key of the user's run that holds the selected GPU; empty if none does.
std::string run_of_gpu(const Model& model);

} // namespace gpuq::tui
