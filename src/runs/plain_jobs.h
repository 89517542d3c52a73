// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "runs/overview.h"
#include "runs/status.h"

#include <string>
#include <string_view>
#include <vector>

/// The user's own Slurm jobs that gpuq did not start: of sbatch, srun, salloc.
namespace gpuq {

/// True for a job whose comment names a run that is on disk: gpuq started it. A comment that names
/// none, whoever wrote it, makes no run.
bool is_of_a_run(Store& store, const Job& job);

/// A plain job as a run is shown. Of an ended one, how it ended as Slurm has it.
RunStatus plain_status(const OwnJob& own, const std::string& cluster, Time now);

/// Those of `jobs` that are plain, the newest first; of ended ones those of the last 24 hours.
std::vector<RunStatus> plain_statuses(Store& store, const std::vector<OwnJob>& jobs,
                                      const std::string& cluster, Time now);

/// True for what Slurm's commands take as a job: `20`, `20_3`, `20_[1-4]`, `20+1`.
bool spells_a_job(std::string_view word);

/// Whether a word that spells a job means this one, or one that this one is a part of.
bool is_called(const Job& job, std::string_view word);

} // namespace gpuq
