// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/clock.h"
#include "ports/job.h"
#include "ports/step_process.h"
#include "ports/store.h"
#include "runs/patience.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

class Cluster;

/// Removes the files that submit_run wrote, for a run that Slurm refused: invalid input leaves no
/// trace.
void forget_run(Store& store, const RunKey& key);

/// A run to submit.
struct Submission {
    const Run& run;
    JobSpec spec;
    std::vector<std::string> step; ///< the supervisor's command line as a step of an allocation
    std::string script;            ///< the batch script that executes the supervisor
    bool try_now = true;           ///< false: queue it at once (--detach, --after, ...)
    std::string idle_rules = {};   ///< content of idle.json (runs/idle.h); empty: no file
    std::string credentials = {};  ///< content of credentials.json (runs/credentials.h); likewise
    /// Called when the run is on disk, before any request to Slurm: stores the run's ticket.
    std::function<void()> store_ticket = {};
    /// Takes the snapshot of the run's code. Returns the content of layout::snapshot, which is then
    /// written with the run's other files; empty: none. Called before any request to Slurm if
    /// `snapshot_at_once`, else before the run is put into the queue, or before waiting for a Slurm
    /// that does not respond. An error ends the submission, unless a job may exist.
    std::function<Result<std::string>()> take_snapshot = {};
    bool snapshot_at_once = false;
};

/// The result of a submission. `process` is set if the supervisor runs as a step whose streams the
/// caller holds.
struct Submitted {
    JobId job;
    bool batch = false;
    std::optional<StepProcess> process;
    /// Slurm's reason why it does not start at once; empty otherwise.
    std::string not_now;
};

/// Starts the run now if GPUs are free, else queues it. run.json and the run's entry in
/// index/active are on disk before the first request to Slurm. The program never runs twice: if a
/// response is lost, the run's key is looked up among the user's jobs before the request is
/// repeated, and a supervisor that finds its run claimed by another job exits without starting the
/// program.
///
/// `unreachable`: Slurm did not respond for the whole of `patience`. A stop request is then left in
/// the inbox, so that a job that was made after all ends on its own. `denied`: Slurm refused.
Result<Submitted> submit_run(Store& store, Cluster& cluster, Clock& clock,
                             const Submission& submission, const Patience& patience);

} // namespace gpuq
