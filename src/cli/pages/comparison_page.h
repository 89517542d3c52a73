// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/comparison_text.h"

#include <string>

namespace gpuq::cli {

/// The comparison as an HTML page (report/html.h): the runs, the settings that differ, the metrics,
/// and a chart of each metric by step, with a curve for each run. Pure.
std::string comparison_page(const WholeComparison& whole, Time now);

} // namespace gpuq::cli
