// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/insight/overview.h"

#include <vector>

/// The user's own share of the GPUs in an overview. Pure.
namespace gpuq {

/// Adds those of these GPUs that are in a pool to the user's share of its nodes. Returns their
/// number.
int add_held(PoolUse& use, const std::vector<HeldGpus>& held);

/// Sets the user's share of a pool; `mine`: the user's jobs, of the same moment. For some seconds
/// after its start, slurmctld knows the jobs but not their GPUs: these are then unknown.
void set_share(PoolUse& use, const std::vector<Job>& mine);

/// Updates an overview with the current GPUs of the user's own jobs: starts and ends of runs since
/// the query to Slurm are on disk, and jobs are queried more often than nodes. Without this, GPUs
/// held by a listed run would be shown as free. `runs`: gpuq's runs. GPUs of a run that has started
/// since count on its first node, if that is known; the others only in the pool. GPUs of the user's
/// jobs are released by the limits of these at the latest. A GPU on which the user holds shares is
/// the user's. For display: the result must not be passed again.
Overview with_own_runs(Overview overview, const std::vector<RunStatus>& runs);

} // namespace gpuq
