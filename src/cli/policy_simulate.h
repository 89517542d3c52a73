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

/// `gpuq policy simulate`.
Result<int> policy_simulate(Invocation& invocation);

} // namespace gpuq::cli
