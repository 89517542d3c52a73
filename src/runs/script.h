// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/run.h"
#include "ports/cluster.h"

#include <string>

namespace gpuq {

/// The script a person could submit by hand with sbatch for the effect of the run: what --dry-run
/// prints. The same resources, folder, environment and program; output beside the script, stdout
/// and stderr apart. Right for any bytes in arguments and values.
std::string sbatch_script(const Request& request, const JobSpec& spec);

/// Where a supervisor is, and what it is to run.
struct SupervisorCall {
    std::string supervisor; ///< absolute path
    std::string state_dir;
    RunKey key;
    LinkNumber link;
};

/// gpuq's own batch script: executes the supervisor, all in words that are quoted. With #SBATCH
/// lines when sbatch is to read it: what the run asks for, then the person's `--slurm`, which wins.
std::string batch_script(const SupervisorCall& call, const Request& request, const JobSpec& spec);

} // namespace gpuq
