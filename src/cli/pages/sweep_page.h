// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/sweep_table.h"

#include <string>

namespace gpuq::cli {

/// A sweep as an HTML page (report/html.h): its tries, those with the best values first, and a
/// chart of their values in the order of their ends. Pure.
std::string sweep_page(const SweepStatus& status, Time now);

} // namespace gpuq::cli
