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
/// `trace`: the name of the workload. Pure.
report::Json::Members simulation_document(const std::vector<Simulated>& all,
                                          const std::string& trace, const LeftOut& left_out);
/// A line about the jobs of the workload that were not simulated, or nothing. Pure.
std::string left_out_text(const std::string& trace, const LeftOut& left_out);

/// The waits of the last of `all` in each of its partitions, so that owners see what lending costs
/// them. Pure.
report::Table partitions_table(const std::vector<Simulated>& all);
/// The users who wait longest under the last of `all`, ten at most, with their waits under each.
/// Empty for a trace without users. Pure.
report::Table users_table(const std::vector<Simulated>& all);

/// The promises of waits that its policy does not keep, a line each. Pure.
std::string broken_text(const Simulated& one);
report::Json broken_json(const Simulated& one);
/// By which rules its policy refuses how many runs, a line each. Pure.
std::string refused_text(const Simulated& one);

} // namespace gpuq::cli
