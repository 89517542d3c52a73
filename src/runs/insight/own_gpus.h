// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/insight/overview.h"

#include <vector>

/// The user's own share of the GPUs in an overview. Pure.
namespace gpuq {

/// True if a job in this state holds its allocation.
bool has_gpus(JobState state);

/// The number of these GPUs that are in a pool.
int held_in(const PoolUse& use, const std::vector<HeldGpus>& held);

/// Updates an overview with the current GPUs of the user's own jobs: starts and ends of runs since
/// the query to Slurm are on disk, and jobs are queried more often than nodes. Without this, GPUs
/// held by a listed run would be shown as free. `runs`: gpuq's runs.
Overview with_own_runs(Overview overview, const std::vector<RunStatus>& runs);

} // namespace gpuq
