// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

/// The panel below the list on a wide screen: the log of the selected run, or its facts while its
/// panel shows the log. It never has the keys. Pure.
namespace gpuq::tui {

void draw_lower(Canvas& canvas, const Rect& panel, const Model& model);
/// The log within it, as for the functions in log_view.h; no rows if it shows none.
Rect area_of_lower_log(const Model& model);

} // namespace gpuq::tui
