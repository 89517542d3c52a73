// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "runs/query_status.h"
#include "runs/queues/start_forecast.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Text and JSON of runs. Pure.
namespace gpuq::cli {

/// The table of `ls`: columns id, name, state, queue, gpus, time, exit; kind if it has a plain job;
/// on request also cause, node, submitted, started, ends, cluster, key, kind.
report::Table run_table(const std::vector<RunStatus>& runs, Time now);

/// The object for a run in every JSON document. `forecast`: of its start, if it waits.
report::Json run_json(const RunStatus& status, Time now,
                      const std::optional<StartForecast>& forecast = {});

/// Forecasts of the starts of waiting runs, by their keys.
using RunForecasts = std::map<RunKey, StartForecast>;

/// For --json: `runs` and `warnings`, which also have the `shortages` of tickets. `plain_unknown`:
/// why plain jobs are unknown or out of date; empty: they are current.
report::Json::Members run_list(const RunStatuses& statuses,
                               const std::vector<std::string>& shortages, Time now,
                               const std::string& plain_unknown = {},
                               const RunForecasts& forecasts = {});

/// `12 (train)`: the job id, or the short key before there is one, and the name. Not sanitised.
std::string run_title(const RunStatus& status);

/// How a run is identified apart from its name: its job id, else its short key; for a plain job the
/// id as in Slurm's commands (`20_3`).
std::string run_id(const RunStatus& status);

/// A text that denotes it as long as it exists, also an array whose tasks start one by one, which
/// changes its id.
std::string lasting_key(const RunStatus& status);

/// `run`, or `job` for a plain job.
std::string_view noun(const RunStatus& status);

/// When a waiting run is expected to start: Slurm's plan, else the latest time according to the
/// time limits of the jobs before it.
std::optional<Time> start_of(const RunStatus& status);

/// The source of that time: `backfill` (Slurm's plan), `begin_time` (requested), `limits` (of the
/// jobs before it); nothing if there is no such time.
std::optional<std::string> basis_of_start(const RunStatus& status);

/// `expected start 14:30`, `starts by 14:30 at the latest, when job 12 reaches its time limit`;
/// empty if unknown.
std::string start_text(const RunStatus& status, Time now);

} // namespace gpuq::cli
