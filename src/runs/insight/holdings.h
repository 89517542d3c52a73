// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "runs/insight/overview.h"

#include <vector>

/// Which jobs hold the GPUs in an overview. Pure.
namespace gpuq {

/// True if a job in this state holds its allocation.
bool has_gpus(JobState state);

/// The GPUs that these jobs hold, sorted by node, then job.
std::vector<Holding> holdings_of(const std::vector<Job>& jobs);

/// Adds a holding at its place in the order.
void add_holding(std::vector<Holding>& holdings, Holding holding);

/// Replaces the holdings of the jobs in `overview.jobs` and of `own`, the newer response, by those
/// of `own`.
void replace_own_holdings(Overview& overview, const std::vector<Job>& own);

/// Removes holdings of others that can no longer be true: the job's time limit is long past, or
/// more GPUs are held on a node than are in use. In the second case it is not known which job has
/// ended; those with the nearest time limits are removed.
void drop_ended_holdings(Overview& overview, Time now);

} // namespace gpuq
