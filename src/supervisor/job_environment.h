// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "runs/chain.h"
#include "supervisor/program.h"

#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Slurm's variables as sbatch gives them to a script. A supervisor that runs as a step on the
/// first node finds those of that step instead: its own name, one node, addresses of its srun.
/// Does nothing in a batch job.
void describe_job(Environment& variables, const Run& run);

/// Sets the GPUQ_ variables that say which run this is and where its files are, and what the user
/// set with --env. The deadline is the supervisor's to know.
void describe_run(Environment& variables, const Run& run, LinkNumber link,
                  const std::string& state_dir);

/// The same for a link of a chain: what it goes on from, and why; a run of Weights & Biases that
/// fits it, unless the user has set one.
void describe_link(Environment& variables, const Run& run, Restart restart,
                   const std::string& checkpoint);

/// Where the run's processes can meet, by the names of torch and torchrun: MASTER_ADDR (of a run
/// on several nodes only start_ranks.h knows it), MASTER_PORT, and for one launcher on each node
/// how many nodes and GPUs there are. `port`: that is kept for it; unset: one is derived from the
/// job's id. What these and a rank's variables say otherwise is of another run, and goes; what
/// --env has set stays.
void describe_meeting(Environment& variables, const Run& run, LinkNumber link, JobId job,
                      std::optional<int> port);

} // namespace gpuq::supervisor
