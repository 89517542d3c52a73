// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <vector>

namespace gpuq::tui {

/// The history of the selected run: a bar for each kind of event on one time axis, and below it the
/// events, newest first. Pure.
std::vector<Line> timeline_lines(const Model& model, int columns);

} // namespace gpuq::tui
