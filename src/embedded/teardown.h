// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/process.h"
#include "embedded/state.h"
#include "embedded/tools.h"

#include <vector>

namespace gpuq::embedded {

/// Processes of a cluster, told apart by what has to happen to them.
struct ClusterProcesses {
    std::vector<ProcessFacts> daemons; ///< munged, mariadbd and Slurm's own
    std::vector<ProcessFacts> jobs;    ///< what jobs run, and what they left behind
};

/// Picks them out of `all`: by SLURM_CONF in the environment, by descent from a slurmstepd, by
/// `confined` (pids in cgroups of the cluster). Never a process in `spared`. Pure.
ClusterProcesses pick(const std::vector<ProcessFacts>& all, const std::string& marker,
                      const std::vector<int>& confined, const std::vector<int>& spared);

/// Ends all of them: running jobs as cancelled, then the daemons in an order in which none loses
/// what another still has to tell it. Removes sockets and cgroups. The number of jobs cancelled;
/// `internal` when a process would not go.
Result<int> end_everything(const Places& places, const State& state);

} // namespace gpuq::embedded
