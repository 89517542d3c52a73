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

/// What a launch does, in this order.
struct Launching {
    Cluster::Before before;             ///< in this process; may be empty
    std::function<Result<JobId>()> job; ///< in the new one: our death does not touch it
    std::function<void(JobId)> give_up; ///< there, when srun can't be executed
};

/// One task on each of `nodes` nodes of a job, from its `first_node` (0, 1 ...) on.
struct Step {
    std::vector<std::string> words;
    bool with_input = false;
    int first_node = 0;
    int nodes = 1;
};

/// Makes a process in a session of its own, not our child, that gets ready while `before` is done
/// here, asks `job` for a job id and then becomes the srun of `step` in that job.
/// Returns when it has become srun, or with the reason why not; `unreachable` when it vanished
/// before it could say.
Result<Launched> launch(const Launching& what, const Step& step);

/// STOPs an srun and the process that watches it (which cancels the step as soon as it sees srun
/// die), then KILLs both: the step goes on.
void orphan_step_of(const StepProcess& srun);

/// The words of srun for a step in job `id`.
std::vector<std::string> srun_command(JobId id, const Step& step);

} // namespace gpuq::slurm
