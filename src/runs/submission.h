// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/store.h"
#include "runs/patience.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// Takes back what submit_run wrote, for a run that Slurm refused: bad input leaves no trace.
void forget_run(Store& store, const RunKey& key);

/// What is to be submitted, and how.
struct Submission {
    const Run& run;
    JobSpec spec;
    std::vector<std::string> step; ///< supervisor's command line as the step of an allocation
    std::string script;            ///< the batch script that executes the supervisor
    bool try_now = true;           ///< false: --detach, --after and everything else that can wait
    std::string idle_rules = {};   ///< the text of idle.json (runs/idle.h); empty: there is none
    std::string credentials = {};  ///< the same of credentials.json (runs/credentials.h)
    /// Called when the run is on disk, before Slurm is asked: puts its ticket beside it.
    std::function<void()> store_ticket = {};
};

/// What came of it. `process` is set when the supervisor runs as a step whose streams we hold.
struct Submitted {
    JobId job;
    bool batch = false;
    std::optional<StepProcess> process;
    /// Why it does not start at once, in Slurm's words; empty otherwise.
    std::string not_now;
};

/// Starts the run now when there are GPUs, else queues it. run.json and the mark that the run is
/// active are on disk before anything is asked of Slurm. Never twice: when an answer is lost, the
/// key is looked up among the user's jobs before anything is asked again, and a supervisor that
/// finds the run claimed by another job leaves without starting the program.
///
/// `unreachable`: Slurm gave no answer for the whole of `patience`. A stop request is left in the
/// inbox then, so that a job that was made after all ends by itself; `denied`: refused.
Result<Submitted> submit_run(Store& store, Cluster& cluster, Clock& clock,
                             const Submission& submission, const Patience& patience);

} // namespace gpuq
