// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "ports/nodes.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

/// Free GPUs, derived from Slurm's data about nodes and jobs. Pure.
namespace gpuq {

/// The shares of a pool's GPUs.
struct PoolShares {
    GpuShare::Kind kind = GpuShare::Kind::shard;
    int per_gpu = 1; ///< the largest number if nodes differ
    int total = 0;
    std::optional<int> free; ///< available to runs now; unset: use not reported
    bool operator==(const PoolShares&) const = default;
};

/// The GPUs of one model on nodes that belong to the same queues. Each GPU of a cluster is in
/// exactly one pool; total = free + in_use + down + blocked if all of them are known.
struct GpuPool {
    std::string model;               ///< empty if Slurm knows no type
    std::vector<std::string> queues; ///< sorted
    int total = 0;
    std::optional<int> free;   ///< available to a run now; unset: use not reported
    std::optional<int> in_use; ///< held by jobs, as a whole or in part
    int down = 0;              ///< not held, on nodes that accept no jobs
    int blocked = 0; ///< not held, but in a reservation, in no open queue, or on a node without a
                     ///< free core
    std::optional<int> most_on_one_node; ///< largest number of free GPUs on one node
    std::optional<PoolShares> shares{};  ///< unset: its GPUs are not shared
    bool operator==(const GpuPool&) const = default;
};

/// The GPUs of a pool's model on one of its nodes.
struct NodeUse {
    std::string name;
    int total = 0;
    std::optional<int> in_use; ///< held by jobs; unset: not reported
    bool up = true;            ///< accepts new jobs
    bool reserved = false;     ///< in an active reservation
    int blocked = 0;           ///< as in GpuPool; 0 if the node is down
    int mine = 0;              ///< of those in use, the user's; set only in an overview
    bool operator==(const NodeUse&) const = default;
};

/// The number of GPUs on a node that are available to a run now, and of those that are not held
/// because the node accepts no jobs; unset: use not reported. The sums over the nodes of a pool,
/// and of `in_use` and `blocked`, are the numbers of the pool.
std::optional<int> free_on(const NodeUse& node);
std::optional<int> down_on(const NodeUse& node);

/// Sorted by queues, then model.
std::vector<GpuPool> gpu_pools(const Inventory& inventory);

/// The nodes of a pool, in the order of the inventory.
std::vector<NodeUse> nodes_of(const GpuPool& pool, const Inventory& inventory);

/// Whether a GPU is free now. Nothing if Slurm did not report enough.
std::optional<bool> is_one_free(const std::vector<GpuPool>& pools);

/// The queue of a pool that a short run should use: open, smallest limit first, the default queue
/// first among equals; nothing if none is open.
std::optional<Partition> best_queue(const GpuPool& pool, const std::vector<Partition>& partitions);

/// GPUs, or shares of them, that a running job will release.
struct NextFree {
    std::optional<Time> at; ///< the latest time, from the job's limit; unset: no limit
    std::string model;
    int count = 0; ///< GPUs that are free as a whole then: of shared ones, those without any other
                   ///< job whose limit is later
    std::vector<std::string> queues; ///< of the node
    std::string node;
    JobId job;
    std::optional<GpuShare> share{}; ///< kind and parts; unset: it holds whole GPUs
    bool operator==(const NextFree&) const = default;
};

/// In the order of their times, those without a time last. Only GPUs on nodes that accept new jobs.
std::vector<NextFree> next_free(const std::vector<Node>& nodes, const std::vector<Job>& jobs);

/// True if a pending job waits only for resources and its turn.
bool could_start(const Job& job);
/// True if `one` precedes `other` in Slurm's order: its priority is higher, or equal and the job is
/// older. False if a priority is not known.
bool goes_before(const Job& one, const Job& other);

/// The pending jobs that could start, and the GPUs that they request: they are served first.
struct WaitingLine {
    int jobs = 0;
    int gpus = 0;
    bool operator==(const WaitingLine&) const = default;
};
WaitingLine waiting_line(const std::vector<Job>& jobs);

/// The number of pending jobs in the same queue that precede `mine`: jobs that could start and have
/// a higher priority, or the same priority and are older. Nothing if `mine` itself could not start
/// (held, dependent on another job), its priority is not known or the site hides other users' jobs.
std::optional<int> jobs_ahead(const Job& mine, const AllJobs& all);
/// The same for every job that has such a number.
std::map<JobId, int> jobs_ahead(const AllJobs& all);

} // namespace gpuq
