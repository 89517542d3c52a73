// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/policy_simulate.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpuq::cli {

/// What was simulated, in words of the reader's.
struct SimulatedTrace {
    std::string name; ///< the file
    std::size_t runs = 0;
    sim::Seconds span{0}; ///< from the first submission to the last
    sim::Declared declared = sim::Declared::honestly;
};

/// A page that shows the figures of simulation_table and their curves: `all` are two, the second is
/// compared with the first. Pure.
std::string simulation_page(const std::vector<Simulated>& all, const SimulatedTrace& trace);

} // namespace gpuq::cli
