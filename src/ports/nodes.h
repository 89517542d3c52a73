// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"
#include "core/ids.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// State and configuration of the controller.
struct Controller {
    std::string version;              ///< release of slurmctld: 22.05.8
    std::string library;              ///< release of libslurm that gpuq was built with
    std::optional<Time> now;          ///< its clock when it responded, to the second
    std::string scheduler_parameters; ///< SchedulerParameters, as written
    std::chrono::seconds kill_wait{0};
    std::chrono::seconds inactive_limit{0}; ///< 0: none
    bool keeps_accounting = false;
    bool counts_memory = true; ///< nodes' memory is allocated to jobs (CR_*_Memory)
    /// A job is confined to its memory: ConstrainRAMSpace with task/cgroup, or OverMemoryKill.
    bool limits_memory = true;
    /// PrivateData, as in slurm.conf: what users without privileges do not see of others; `mcs` if
    /// MCSParameters hides jobs and nodes by label.
    std::vector<std::string> private_data = {};
};

/// A Slurm partition. The additional partitions that a queue of a gpuq policy has for its other
/// pools are not listed; they are merged into the queue: its nodes include theirs, and `most_nodes`
/// and `grace` are the largest values.
struct Partition {
    std::string name;
    std::optional<std::chrono::minutes> max_time; ///< nullopt: no limit
    std::optional<std::chrono::minutes> default_time;
    bool is_default = false;
    bool up = true;
    bool ruled = false; ///< a queue of a gpuq policy: several may be requested, and the first one
                        ///< that accepts a job gets it (man gpuq-policy(5))
    std::string nodes;  ///< Slurm's host list expression
    std::optional<int> most_nodes; ///< limit per job; nullopt: unknown
    std::string submit_hosts;      ///< AllocNodes, as written: hosts from which jobs may be
                                   ///< submitted; empty: any
    /// Time that a preempted job has left to save its state; 0 if none, or if jobs are not
    /// preempted.
    std::chrono::seconds grace{0};
    // DefCpuPerGPU and DefMemPerGPU; unset: none.
    std::optional<int> cpus_per_gpu{};
    std::optional<std::uint64_t> memory_mib_per_gpu{};
    bool accepts = true;                 ///< jobs can be submitted; while it is not up they wait
    std::optional<bool> has_gpus{};      ///< nullopt: unknown, since Slurm does not count GPUs
    int least_nodes = 1;                 ///< of a job
    bool restricted = false;             ///< to root, or to jobs in reservations
    std::vector<std::string> accounts{}; ///< AllowAccounts; empty: all
    std::vector<std::string> denied_accounts{}; ///< DenyAccounts
};

/// GPUs of one model on one node.
struct NodeGpus {
    std::string model; ///< empty when Slurm has no type
    int total = 0;
    std::optional<int> in_use; ///< also those in part; nullopt when not reported
    bool operator==(const NodeGpus&) const = default;
};

/// The shares of a node's GPUs of one model.
struct NodeShares {
    GpuShare::Kind kind = GpuShare::Kind::shard;
    std::string model;
    int per_gpu = 1;
    int total = 0;
    std::optional<int> in_use; ///< held by jobs as shares; nullopt when not known
    std::optional<int> gpus;   ///< the GPUs to which these belong
    bool operator==(const NodeShares&) const = default;
};

struct Node {
    std::string name;
    std::vector<NodeGpus> gpus;
    std::vector<std::string> partitions;
    bool up = true; ///< accepts new jobs
    int cpus = 0;
    std::uint64_t memory_mib = 0;
    bool reserved = false;          ///< in an active reservation: not available to all users
    std::optional<int> cpus_in_use; ///< nullopt when not reported
    std::vector<NodeShares> shares{};
};

/// Partitions and nodes at one point in time.
struct Inventory {
    std::vector<Partition> partitions;
    std::vector<Node> nodes;
};

} // namespace gpuq
