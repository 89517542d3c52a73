// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/run.h"
#include "ports/job.h"

#include <string>

namespace gpuq {

/// The script printed by --dry-run: submitted with sbatch, it has the effect of the run. Same
/// resources, directory, environment and program; stdout and stderr go to two files in the
/// directory where sbatch is run. Correct for any bytes in arguments and values.
std::string sbatch_script(const Request& request, const JobSpec& spec);

/// The supervisor's path and arguments.
struct SupervisorCall {
    std::string supervisor; ///< absolute path
    std::string state_dir;
    RunKey key;
    LinkNumber link;
};

/// gpuq's own batch script: executes the supervisor, all arguments quoted. If sbatch will read it,
/// it has #SBATCH lines: the request's resources, then the user's `--slurm` options, which take
/// precedence.
std::string batch_script(const SupervisorCall& call, const Request& request, const JobSpec& spec);

} // namespace gpuq
