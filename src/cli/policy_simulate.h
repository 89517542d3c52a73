// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "report/json.h"
#include "report/table.h"
#include "sim/curves.h"
#include "sim/measure.h"
#include "sim/scenario.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpuq::cli {

/// What became of a trace, under one policy or another.
struct Simulated {
    std::string name; ///< the policy's file, or `plain queue`
    sim::Measures measures;
    std::size_t refused = 0;
    sim::Curves curves;
};

/// One column for each of `all`; the first is what the others are compared with. Pure.
report::Table simulation_table(const std::vector<Simulated>& all);
report::Json::Members simulation_document(const std::vector<Simulated>& all,
                                          const std::string& trace);

/// `gpuq policy simulate`.
Result<int> policy_simulate(Invocation& invocation);

} // namespace gpuq::cli
