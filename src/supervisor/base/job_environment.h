// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "runs/chain.h"
#include "supervisor/base/program.h"

#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Sets Slurm's variables as sbatch sets them for a script. A supervisor that runs as a step on the
/// first node inherits those of its step instead: the step's name, one node, addresses of its srun.
/// In a batch job only the step number is removed.
void describe_job(Environment& variables, const Run& run);

/// Sets the GPUQ_ variables that identify the run and its files, and the variables that the user
/// set with --env. The deadline is set by the supervisor.
void describe_run(Environment& variables, const Run& run, LinkNumber link,
                  const std::string& state_dir);

/// Sets the variables of a chain's link: the checkpoint it resumes from and the reason; and, unless
/// the user has set them, variables that make Weights & Biases continue the same run.
void describe_link(Environment& variables, const Run& run, Restart restart,
                   const std::string& checkpoint);

/// Sets the rendezvous address for the run's processes in the variables of torch and torchrun:
/// MASTER_ADDR (with several nodes it is set later, by start_ranks.h), MASTER_PORT, and, for one
/// launcher per node, the number of nodes and GPUs. `port`: the port reserved for it; if unset, one
/// is derived from the job's id. Inherited values of these and of rank variables belong to another
/// run and are removed, except those set with --env.
void describe_meeting(Environment& variables, const Run& run, LinkNumber link, JobId job,
                      std::optional<int> port);

} // namespace gpuq::supervisor
