// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/run.h"
#include "ports/cluster.h"
#include "ports/job.h"
#include "report/json.h"
#include "runs/insight/overview.h"
#include "runs/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Parts of the output of `gpuq run --dry-run`.
namespace gpuq::cli {

/// When a run would start, as of an overview that another process of the user has recently queried.
struct ExpectedStart {
    /// `others_wait`: enough GPUs are free, and jobs wait. `never`: no node has as many.
    enum class Answer : std::uint8_t { at_once, others_wait, waits, never };
    Answer answer = Answer::waits;
    std::optional<std::string> model; ///< of the GPUs that it may get; unset: Slurm knows no type
    std::optional<int> free;          ///< of this model; unset: not relevant (`never`)
    int most_on_a_node = 0;           ///< of them; with `never`: that a node has
    std::optional<int> waiting;       ///< jobs that could start; unset: not known
    /// Of a run of one of these GPUs, and the latest time at which a job releases one; with `waits`
    /// only, and unset if all jobs were not queried recently.
    std::optional<StartForecast> forecast;
    std::optional<Time> next;
    Time asked_at;                     ///< the nodes
    std::optional<Time> jobs_asked_at; ///< all jobs
    double observed = 0;               ///< jobs that ended, on which the forecast is based
};

/// Nothing without a recent overview, and for a run without GPUs or with shares of them. Pure.
std::optional<ExpectedStart> expected_start(const JobSpec& spec, const Overview& overview,
                                            Time now);
/// The same, from the overview that gpuq top keeps on disk; makes no query.
std::optional<ExpectedStart> expected_start(Services& services, Cluster& cluster,
                                            const JobSpec& spec);
/// `starts at once: 2 k80 were free 8 s ago`.
std::string start_text(const ExpectedStart& start, const JobSpec& spec, Time now);
/// The output with --json.
report::Json::Members dry_run_document(const Plan& plan, const std::string& script,
                                       const std::optional<ExpectedStart>& start, Time now);

/// Without the values of these variables: they may be secret, and were not typed on this screen.
Request without_values(Request request, const std::vector<std::string>& names);

} // namespace gpuq::cli
