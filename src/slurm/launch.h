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

/// Makes a process in a session of its own, not our child, that asks `job` for a job id and then
/// becomes the srun of `step` on the first node of that job. Returns when it has become srun, or
/// with the reason why not; `unreachable` when it vanished before it could say.
///
/// `job` and `give_up` (called when srun can't be executed) run in that process: our death does
/// not touch them.
Result<Launched> launch(const std::function<Result<JobId>()>& job,
                        const std::function<void(JobId)>& give_up,
                        const std::vector<std::string>& step, bool with_input);

/// STOPs an srun and the process that watches it (which cancels the step as soon as it sees srun
/// die), then KILLs both: the step goes on.
void orphan_step_of(const StepProcess& srun);

/// The words of srun for a step in job `id`.
std::vector<std::string> srun_command(JobId id, const std::vector<std::string>& step,
                                      bool with_input);

} // namespace gpuq::slurm
