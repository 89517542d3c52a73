// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <cstddef>
#include <string>
#include <vector>

/// The tries of the selected sweep: a leaderboard and a plot, in the panel of the run. Pure.
namespace gpuq::tui {

/// Indices of its tries in the order chosen: to be kept as BoardView::order after each change.
/// Empty if the selection is not a sweep.
std::vector<std::size_t> ordered_tries(const Model& model);
/// The place of the selected try in that order; 0 without tries.
std::size_t place_of_try(const Model& model);
/// The first line of the leaderboard to show: the current one if the selected try is then visible,
/// else the nearest with which it is. To be kept in the model after each change.
std::size_t first_try_shown(const Model& model);
/// The numbers of the tries that the screen shows.
std::vector<std::size_t> tries_shown(const Model& model);

void draw_board(Canvas& canvas, const Rect& area, const Model& model);
/// For the edges of the panel: which tries are shown, and in which order.
std::string board_title(const Model& model);

/// The number of the try at a row of the screen; 0: none.
std::size_t try_at(const Model& model, int row);

/// Done, failed, running and waiting tries as parts of a bar.
Line tries_bar(const Sweep& sweep, int width, const Theme& theme);
/// `lr=3e-4 batch=32`: those of the parameters that differ. Not sanitised.
std::string values_text(const Sweep& sweep, const TryRow& entry);

} // namespace gpuq::tui
