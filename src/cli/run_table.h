// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "report/table.h"
#include "runs/look.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Runs as people and scripts are shown them. Pure.
namespace gpuq::cli {

/// What `ls` lists: columns id, name, state, queue, gpus, time, exit; where there is a plain job
/// among them also kind; on request also cause, node, submitted, started, ends, cluster, key, kind.
report::Table run_table(const std::vector<RunStatus>& runs, Time now);

/// A run in every document that tells of one.
report::Json run_json(const RunStatus& status, Time now);

/// The same for --json: `runs` and `warnings`, which have the `shortages` of tickets too.
/// `plain_unknown`: why the plain jobs are not known, or not new; empty: they are.
report::Json::Members run_list(const Looked& looked, const std::vector<std::string>& shortages,
                               Time now, const std::string& plain_unknown = {});

/// `12 (train)`: the job id, or the short key before there is one, and the name. Not sanitised.
std::string run_title(const RunStatus& status);

/// What a run is called before its name: its job id, else its short key; a plain job as Slurm's
/// commands call it (`20_3`).
std::string run_id(const RunStatus& status);

/// `run`, or `job` for a plain one.
std::string_view noun(const RunStatus& status);

/// When a waiting run is expected to start: in Slurm's plan, else at the latest, as far as the
/// limits of the jobs before it say.
std::optional<Time> start_of(const RunStatus& status);

/// Where that comes from: `backfill` (Slurm's plan), `begin_time` (asked for), `limits` (of the
/// jobs before it), or nothing when there is none.
std::optional<std::string> basis_of_start(const RunStatus& status);

/// `expected start 14:30`, `starts by 14:30 at the latest, when job 12 reaches its time limit`;
/// empty where that is not known.
std::string start_in_words(const RunStatus& status, Time now);

} // namespace gpuq::cli
