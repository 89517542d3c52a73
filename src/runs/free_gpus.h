// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <optional>
#include <string>
#include <vector>

/// What is free, out of what Slurm says of its nodes and jobs. Pure.
namespace gpuq {

/// The GPUs of one model on nodes that belong to the same queues. Each GPU of a cluster is in one
/// pool; total = free + in_use + down + blocked where all of them are known.
struct GpuPool {
    std::string model;               ///< empty when Slurm knows no type
    std::vector<std::string> queues; ///< sorted
    int total = 0;
    std::optional<int> free;   ///< a run could have them now; unknown when Slurm did not say what
                               ///< is in use
    std::optional<int> in_use; ///< held by jobs
    int down = 0;              ///< not held, on nodes that take no jobs
    int blocked = 0;           ///< not held, but in a reservation, in no open queue, or on a node
                               ///< without a free core
    std::optional<int> most_on_one_node; ///< of the free ones
    bool operator==(const GpuPool&) const = default;
};

/// Sorted by queues, then model.
std::vector<GpuPool> gpu_pools(const Inventory& inventory);

/// Is there one, now? Nothing when Slurm did not say enough.
std::optional<bool> is_one_free(const std::vector<GpuPool>& pools);

/// The queue of a pool that a short run should take: open, the smallest limit first, the default
/// queue before its equals; nothing when none is open.
std::optional<Partition> best_queue(const GpuPool& pool, const std::vector<Partition>& partitions);

/// GPUs that a running job will leave.
struct NextFree {
    std::optional<Time> at; ///< at the latest, as the job's limit says; nothing: it has none
    std::string model;
    int count = 0;
    std::vector<std::string> queues; ///< of the node
    std::string node;
    JobId job;
    bool operator==(const NextFree&) const = default;
};

/// In the order of their times, those without one last. Only of nodes that take new jobs.
std::vector<NextFree> next_free(const std::vector<Node>& nodes, const std::vector<Job>& jobs);

/// Whether a pending job needs nothing but resources and its turn.
bool could_start(const Job& job);
/// Whether `one` is before `other` in Slurm's order: a higher priority, or the same and older.
/// False where a priority is not known.
bool goes_before(const Job& one, const Job& other);

/// The jobs that wait and could start, and the GPUs they ask for: they come first.
struct WaitingLine {
    int jobs = 0;
    int gpus = 0;
    bool operator==(const WaitingLine&) const = default;
};
WaitingLine waiting_line(const std::vector<Job>& jobs);

/// How many pending jobs of the same queue go before `mine`: those that could start and have a
/// higher priority, or the same and are older. Nothing when `mine` could not start itself (held,
/// after another), its priority is not known or the site hides the jobs of others.
std::optional<int> jobs_ahead(const Job& mine, const AllJobs& all);

} // namespace gpuq
