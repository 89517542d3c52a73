// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/simulation.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// An HTML page with the figures of simulation_table and their curves. `all` has two elements; the
/// second is compared with the first. Pure.
std::string simulation_page(const std::vector<Simulated>& all, const Workload& workload);

} // namespace gpuq::cli
