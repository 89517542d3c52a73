// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

/// Where the parts of the screen are. Pure.
namespace gpuq::tui {

/// The panels of one frame; a panel without rows is not shown.
struct Areas {
    bool tiny = false; ///< too small for panels: only the most important lines
    Rect gpus, runs, run;
    Rect lower; ///< on a wide screen: the selected run's log, or its facts beside the log
};
Areas areas_of(const Model& model);

/// Within the border of a panel.
Rect inside(const Rect& panel);

/// The rows for runs in the list: the panel without border and header.
int rows_for_runs(const Model& model);
/// The rows and columns of the log or of another tab of the run.
Rect area_of_tab(const Model& model);

/// Draws the border of a panel, with texts in its upper and lower edge.
void draw_frame(Canvas& canvas, const Rect& panel, const Line& title, const Line& bottom,
                bool focused, const Theme& theme);

} // namespace gpuq::tui
