// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/simulation.h"
#include "report/json.h"
#include "report/table.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// One column per element of `all`; the first is the baseline. Pure.
report::Table simulation_table(const std::vector<Simulated>& all);
/// `trace`: the workload's name. Pure.
report::Json::Members simulation_document(const std::vector<Simulated>& all,
                                          const std::string& trace, const LeftOut& left_out);
/// A line about the jobs of the workload that were not simulated; empty if there are none. Pure.
std::string left_out_text(const std::string& trace, const LeftOut& left_out);

/// The waits in each partition under the last of `all`, which show owners the cost of lending.
/// Pure.
report::Table partitions_table(const std::vector<Simulated>& all);
/// The users with the longest waits under the last of `all`, ten at most, with their waits under
/// each. Empty for a trace without users. Pure.
report::Table users_table(const std::vector<Simulated>& all);

/// The wait targets that its policy misses, one per line. Pure.
std::string broken_text(const Simulated& one);
report::Json broken_json(const Simulated& one);
/// How many runs its policy refuses under which rule, one line per rule. Pure.
std::string refused_text(const Simulated& one);

} // namespace gpuq::cli
