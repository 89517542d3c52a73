// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The panel of the selected run with its tabs. Pure.
namespace gpuq::tui {

/// Shown until the details of a run are known.
inline constexpr const char* k_reading = "reading its files";

std::string_view name_of(Tab tab);

void draw_run(Canvas& canvas, const Rect& panel, const Model& model);

/// The tab whose name is at a position on the screen.
std::optional<Tab> tab_at(const Model& model, const Rect& panel, int row, int column);

/// Curves shown in one chart: those of training and validation together. Indices into
/// Detail::curves, in their order.
std::vector<std::vector<std::size_t>> charts_of(const std::vector<Curve>& curves);

/// The text of a tab in lines of at most `columns` cells; empty for the log and the curves.
std::vector<Line> lines_of_tab(const Model& model, int columns);
/// How far the text of a tab can be scrolled.
int last_scroll(const Model& model, const Rect& area);

/// `text`, sanitised, in lines of at most `columns` cells, broken at blanks if there are any.
std::vector<std::string> broken(std::string_view text, std::size_t columns);

} // namespace gpuq::tui
