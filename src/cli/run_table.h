// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "runs/look.h"

#include <string>
#include <vector>

/// Runs as people and scripts are shown them. Pure.
namespace gpuq::cli {

/// What `ls` lists: columns id, name, state, queue, gpus, time, exit; on request also cause, node,
/// submitted, started, ends, cluster, key.
report::Table run_table(const std::vector<RunStatus>& runs, Time now);

/// A run in every document that tells of one.
report::Json run_json(const RunStatus& status, Time now);

/// The same for --json: `runs` and `warnings`, which have the `shortages` of tickets too.
report::Json::Members run_list(const Looked& looked, const std::vector<std::string>& shortages,
                               Time now);

/// `12 (train)`: the job id, or the short key before there is one, and the name. Not sanitised.
std::string run_title(const RunStatus& status);

/// What a run is called before its name: its job id, else its short key.
std::string run_id(const RunStatus& status);

} // namespace gpuq::cli
