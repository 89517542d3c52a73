// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "ports/nodes.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// Where a job may run and for how long, for estimates of a start. Pure.
namespace gpuq {

/// The names in a host list; empty if it is invalid.
std::set<std::string> hosts_of(const std::string& list);

/// The nodes that a job may use, as indexes into the inventory: those that are up and not reserved,
/// belong to one of its queues, and are permitted by its node lists.
std::vector<std::size_t> usable_nodes(const Job& job, const Inventory& inventory);

/// The maximum number of nodes that a job may use. With `--gpus=8`, it is eight.
int most_nodes(const Job& job);

/// The job's own time limit, else the longest default of its queues; nullopt: none.
std::optional<std::chrono::minutes> limit_of(const Job& job, const Inventory& inventory);

/// True if the job waits for its queue to open, at a time that Slurm does not know.
bool waits_for_queue(const Job& job);

/// The pending tasks that a job stands for: Slurm shows those of an array as one job.
struct PendingTasks {
    int count = 1;
    std::optional<int> at_once; ///< the maximum number that run at the same time
    bool all_shown = true;      ///< false: there are more, but Slurm abbreviates the list
    bool operator==(const PendingTasks&) const = default;
};
PendingTasks pending_tasks(const Job& job);

/// Why no estimate of the job's start is possible: it is held by a limit, or data is hidden. Empty
/// if there is no obstacle.
std::string obstacle(const Job& job, const AllJobs& all);

} // namespace gpuq
