// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/overview.h"

#include <vector>

/// Whose the GPUs of an overview are, of one moment. Pure.
namespace gpuq {

/// Whether a job in this state holds what it was given.
bool has_gpus(JobState state);

/// How many of these are in a pool.
int held_in(const PoolUse& use, const std::vector<HeldGpus>& held);

/// The overview with the GPUs of one's own jobs as they are now: what one's runs have started and
/// ended since Slurm was asked is on disk, and jobs are asked for more often than nodes. Without
/// this, GPUs that a run in the list has would be shown as free. `runs`: those of gpuq.
Overview with_own_runs(Overview overview, const std::vector<RunStatus>& runs);

} // namespace gpuq
