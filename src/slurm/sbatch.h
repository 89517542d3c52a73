// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/subprocess.h"
#include "ports/job.h"

#include <string>
#include <vector>

namespace gpuq::slurm {

/// Submits a script with #SBATCH lines through the sbatch in PATH. The options that gpuq needs
/// (comment, output, no requeue, directory) are on its command line and override the script's
/// lines.
Result<JobId> submit_by_sbatch(const JobSpec& spec, const std::string& script,
                               const std::vector<std::string>& environment);

/// Interprets the answer of an sbatch whose streams were captured together.
Result<JobId> job_in_answer(const Finished& sbatch);

} // namespace gpuq::slurm
