// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/simulation.h"
#include "report/json.h"
#include "report/table.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// One column for each of `all`; the first is what the others are compared with. Pure.
report::Table simulation_table(const std::vector<Simulated>& all);
/// `trace`: the name of the workload.
report::Json::Members simulation_document(const std::vector<Simulated>& all,
                                          const std::string& trace);

/// The promises of waits that its policy does not keep, a line each. Pure.
std::string broken_text(const Simulated& one);
report::Json broken_json(const Simulated& one);
/// By which rules its policy refuses how many runs, a line each. Pure.
std::string refused_text(const Simulated& one);

/// `gpuq policy simulate`.
Result<int> policy_simulate(Invocation& invocation);

} // namespace gpuq::cli
