// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "runs/insight/overview.h"
#include "runs/status.h"

#include <string>
#include <string_view>
#include <vector>

/// The user's Slurm jobs that were not started by gpuq, but by sbatch, srun or salloc.
namespace gpuq {

/// True if the job's comment names a run that exists on disk, that is, if gpuq started the job. Any
/// other comment is ignored.
bool is_of_a_run(Store& store, const Job& job);

/// Presents a plain job as a run. For an ended job, the ending is the one that Slurm reports.
RunStatus plain_status(const OwnJob& own, const std::string& cluster, Time now);

/// The plain jobs among `jobs`, newest first, including those that ended within the last 24 hours.
std::vector<RunStatus> plain_statuses(Store& store, const std::vector<OwnJob>& jobs,
                                      const std::string& cluster, Time now);

/// True for a job id as Slurm's commands accept it: `20`, `20_3`, `20_[1-4]`, `20+1`.
bool spells_a_job(std::string_view word);

/// True if a job id denotes this job or a job that this one is a part of.
bool is_called(const Job& job, std::string_view word);

} // namespace gpuq
