// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "ports/nodes.h"

#include <map>
#include <optional>
#include <set>
#include <string>

/// The latest possible start of a pending job, according to the time limits of the jobs before it.
/// Pure.
namespace gpuq {

/// An upper bound for a job that Slurm has not planned. It holds if no new job precedes the
/// existing ones and each of them uses all of its time.
struct StartEstimate {
    std::optional<Time> at;     ///< unset: see `unknown`
    std::optional<JobId> after; ///< the job whose end frees the resources; unset: they are free now
    bool after_waits = false;   ///< that job is pending itself, and starts first
    std::string unknown;        ///< why there is no time; empty if there is one
    bool operator==(const StartEstimate&) const = default;
};

/// Estimates each pending job in `wanted` that could start (could_start). Simulates the pending
/// jobs in Slurm's order as running ones reach their limits. A job that does not fit reserves the
/// nodes of its queues against the jobs behind it: backfill may start one of those sooner, never
/// later. Not covered: reservations that have not begun, and requests that gpuq can't compare with
/// nodes (JobSize::other), whose start is unknown.
using StartEstimates = std::map<JobId, StartEstimate>;
StartEstimates expected_starts(const std::set<JobId>& wanted, const AllJobs& all,
                               const Inventory& inventory, Time now);

/// True if an estimate is meaningful: the job waits for resources or its turn, and Slurm has not
/// planned its start.
bool wants_estimate(const Job& job);

/// The basis of an estimate with a time, as a clause after "when": `job 12 reaches its time limit`,
/// `job 17, which goes first, reaches its time limit`.
std::string basis_text(const StartEstimate& estimate);

} // namespace gpuq
