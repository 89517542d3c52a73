// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::slurm {

/// Submits a script with #SBATCH lines through the sbatch in PATH. The options that gpuq needs
/// (comment, output, no requeue, directory) are on its command line and override the script's
/// lines.
Result<JobId> submit_by_sbatch(const JobSpec& spec, const std::string& script,
                               const std::vector<std::string>& environment);

/// Interprets sbatch's answer. `printed`: its stdout and stderr. `status`: 128+N for signal N.
Result<JobId> job_in_answer(std::string_view printed, int status);

} // namespace gpuq::slurm
