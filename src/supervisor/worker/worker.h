// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/clock.h"
#include "ports/files.h"
#include "ports/store.h"
#include "supervisor/worker/grower.h"
#include "sweeps/taker.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// A worker of a sweep: the program of a run that takes one try after the other.
struct WorkerPlan {
    RunKey sweep;
    sweeps::Claimant self; ///< this link of this run
    std::string stop_file; ///< exists once the link is about to end: GPUQ_STOP_FILE
    /// The command line for a try (runs/records/environment.h).
    std::function<std::vector<std::string>(const Request&)> program_argv;
    /// Notifies the processes of one try that it is about to end (supervisor/notice.h), by its
    /// GPUQ_RUN_ID; `others`: the programs of other tries. Returns the number of notified ones.
    std::function<std::size_t(const std::string& run_id, const std::vector<pid_t>& others,
                              Notice notice)>
        notify;
    /// Takes jobs out of Slurm's queue, unless they have started; within a few seconds.
    std::function<void(const std::vector<JobId>& jobs)> withdraw;
    /// Those of a sweep that grows (grower.h); unset: it does not.
    std::optional<GrowthCommands> growth = {};
    /// Time for which a worker without a running try keeps its GPUs while it can record nothing,
    /// for instance on a full disk; none once the sweep has been deleted.
    std::chrono::milliseconds patience = std::chrono::minutes(10);
    /// The time limit of the link: GPUQ_DEADLINE.
    std::optional<Time> deadline = {};
};

/// Parses `work STATE_DIR SWEEP`, with the run and its link from the environment. `usage`.
Result<WorkerPlan>
parse_worker(const std::vector<std::string>& arguments,
             const std::function<std::optional<std::string>(const char*)>& variable);

/// Runs tries until none is left for this worker, the sweep is stopped, or the link ends; prints a
/// line about each. Call it while single-threaded: blocks signals. Returns the exit status: 85 if
/// the next link must continue, 125 if nothing could be recorded for `patience`, else 0, whatever
/// the tries returned. A try whose end is then not recorded is lost, as if the worker had died:
/// another worker runs it again.
Result<int> work(Store& store, Clock& clock, Files& files, const WorkerPlan& plan);

} // namespace gpuq::supervisor
