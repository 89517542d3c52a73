// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <map>
#include <optional>
#include <set>
#include <string>

/// When a pending job can start at the latest, as the time limits of the jobs before it say. Pure.
namespace gpuq {

/// An upper bound where Slurm has made no plan: what holds if no job comes before the ones that are
/// there, and each of them takes all of its time.
struct StartEstimate {
    std::optional<Time> at;     ///< unset: see `unknown`
    std::optional<JobId> after; ///< the job whose end makes room; unset: there is room now
    bool after_waits = false;   ///< that job waits itself, and goes first
    std::string unknown;        ///< why there is no time; empty with one
    bool operator==(const StartEstimate&) const = default;
};

/// For each pending job that `wanted` names, as far as it could start (could_start). Places the
/// pending jobs in Slurm's order as running ones reach their limits. A job that does not fit closes
/// the nodes of its queues to those behind it: backfill may start one sooner, never later. Not
/// covered: reservations that have not begun, and requests that gpuq can not compare with nodes
/// (JobSize::other), whose start is unknown.
using StartEstimates = std::map<JobId, StartEstimate>;
StartEstimates expected_starts(const std::set<JobId>& wanted, const AllJobs& all,
                               const Inventory& inventory, Time now);

/// True where an estimate means something: the job waits for resources or for its turn, and Slurm
/// has no start planned.
bool wants_estimate(const Job& job);

/// On what an estimate with a time is based, to follow "when": `job 12 reaches its time limit`,
/// `job 17, which goes first, reaches its time limit`.
std::string basis_in_words(const StartEstimate& estimate);

} // namespace gpuq
