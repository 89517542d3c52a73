// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "report/json.h"
#include "runs/status.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// `gpuq show` of a plain job: what Slurm has of it, in full. One RPC where the answer that is kept
/// has less.
Result<int> show_plain(Invocation& invocation, const RunStatus& job);

/// Lines for a person, not sanitised. Pure.
std::vector<std::string> plain_lines(const RunStatus& job, Time now);

/// For --json.
report::Json::Members plain_document(const RunStatus& job, Time now);

} // namespace gpuq::cli
