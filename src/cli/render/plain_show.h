// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "report/json.h"
#include "runs/queues/start_forecast.h"
#include "runs/status.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

/// `gpuq show` for a plain job: everything Slurm knows about it. One RPC, unless the job comes from
/// accounting. `forecast`: of its start, if it waits.
Result<int> show_plain(Invocation& invocation, const RunStatus& job,
                       const std::optional<StartForecast>& forecast);

/// Lines for users, not sanitised. Pure.
std::vector<std::string> plain_lines(const RunStatus& job, Time now);

/// For --json. `forecast`: of its start, if it waits.
report::Json::Members plain_document(const RunStatus& job, Time now,
                                     const std::optional<StartForecast>& forecast = {});

} // namespace gpuq::cli
