// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/process.h"
#include "embedded/state.h"
#include "embedded/tools.h"

#include <vector>

namespace gpuq::embedded {

/// Processes of a cluster, grouped by how they must be ended.
struct ClusterProcesses {
    std::vector<ProcessFacts> daemons; ///< munged, mariadbd and Slurm's daemons
    std::vector<ProcessFacts> jobs;    ///< processes of jobs, including leftovers
};

/// Selects the cluster's processes from `all`: by SLURM_CONF in the environment, by descent from a
/// slurmstepd, by `confined` (pids in cgroups of the cluster). Never selects a pid in `spared`.
/// Pure.
ClusterProcesses pick(const std::vector<ProcessFacts>& all, const std::string& marker,
                      const std::vector<int>& confined, const std::vector<int>& spared);

/// Ends all processes: cancels running jobs, then ends the daemons in an order in which each can
/// still report to those it depends on. Removes sockets and cgroups. Returns the number of
/// cancelled jobs; `internal` when a process does not end.
Result<int> end_everything(const Places& places, const State& state);

} // namespace gpuq::embedded
