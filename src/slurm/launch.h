// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <functional>
#include <string>
#include <vector>

namespace gpuq::slurm {

struct Launched {
    JobId job;
    StepProcess process;
};

/// The functions that a launch calls, in this order.
struct Launching {
    Cluster::Before before;             ///< in this process; may be empty
    std::function<Result<JobId>()> job; ///< in the new process, which survives this one
    std::function<void(JobId)> give_up; ///< likewise, if srun can't be executed
};

/// One task on each of `nodes` nodes of a job, starting with node `first_node` (0, 1 ...).
struct Step {
    std::vector<std::string> arguments;
    bool with_input = false;
    int first_node = 0;
    int nodes = 1;
};

/// Creates a process in its own session, which is not a child of this one. It initializes while
/// `before` runs in this process, calls `job` for a job id and then becomes the srun of `step` in
/// that job. Returns when srun is executed, or with the reason for a failure; `unreachable` if the
/// process ended without a report.
Result<Launched> launch(const Launching& what, const Step& step);

/// Stops an srun and the process that watches it (which cancels the step as soon as srun dies),
/// then kills both: the step continues.
void orphan_step_of(const StepProcess& srun);

/// The srun command for a step in job `id`.
std::vector<std::string> srun_command(JobId id, const Step& step);

} // namespace gpuq::slurm
