// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::slurm {

/// Submits a script with #SBATCH lines by the sbatch in PATH. What gpuq needs (comment, output, no
/// requeue, folder) stands on its command line and wins over the script's lines.
Result<JobId> submit_by_sbatch(const JobSpec& spec, const std::string& script,
                               const std::vector<std::string>& environment);

/// What sbatch meant. `printed`: its stdout and stderr.
Result<JobId> job_in_answer(std::string_view printed, int wait_status);

} // namespace gpuq::slurm
