// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/table.h"
#include "tui/model.h"

#include <string>
#include <string_view>
#include <vector>

/// The panel with the list of runs. Pure.
namespace gpuq::tui {

/// Whether a text contains the one that is searched for: lower case matches either case, as in
/// less -i.
bool is_in(std::string_view text, std::string_view sought);
/// Where it begins in the text, from `from` on; npos if it is not there.
std::size_t place_in(std::string_view text, std::string_view sought, std::size_t from = 0);

/// Indices of the runs that pass the filter, sorted and grouped, the workers of a sweep behind it
/// if it is unfolded: to be kept as Model::shown after each change.
std::vector<std::size_t> listed_runs(const Model& model);
/// Whether a run passes the filter.
bool passes(const RunRow& run, const std::string& filter);
/// The name without a number at its end: `train-12` and `train-7` are one group.
std::string group_of(std::string_view name);

/// The first line of the list to show: the current one if the selected run is then visible, else
/// the nearest with which it is. To be kept in the model after each change.
std::size_t first_row_shown(const Model& model);

/// The indices of the runs on the visible lines of the list, sweeps included.
std::vector<std::size_t> runs_on_screen(const Model& model);

/// The indices of the runs whose details determine the order of the list, newest first; at most
/// 1000, so that their details fit in memory. Empty if the order needs none.
std::vector<std::size_t> runs_to_sort(const Model& model);

void draw_runs(Canvas& canvas, const Rect& panel, const Model& model);

/// The tone of a state in a table.
report::Cell::Tone tone_of(RunMark mark);

/// The key of the run at a row of the screen; empty: none.
std::string run_at(const Model& model, const Rect& panel, int row);

} // namespace gpuq::tui
