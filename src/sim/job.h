// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/gpu_parts.h"
#include "sim/machine.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::sim {

/// How a run continues that needs more time than one job has: its further links.
struct Chain {
    Seconds limit{0}; ///< of each further link
    Seconds asked{0}; ///< for the whole run: no link requests more than is left; 0: not specified
    std::vector<int> partitions; ///< of each further link, in order
    Seconds gap{0};              ///< from a link's end until the next is eligible
    Seconds lost{0}; ///< work that each end costs: since the last checkpoint, and loading it
    /// From one checkpoint to the next: a failure of a node also costs the work since the last one.
    /// 0: there is none before the end of a link.
    Seconds saves{0};
};

/// A run as submitted by its user.
struct Job {
    std::uint64_t id = 0;
    Seconds submit{0};
    Seconds duration{0}; ///< of the work, if it is never interrupted
    /// Fractions of a second, in addition to the whole seconds, if known.
    std::optional<std::chrono::milliseconds> submit_part;
    std::optional<std::chrono::milliseconds> duration_part;
    Seconds limit{0};  ///< 0: the partition's default time
    int gpus = 1;      ///< in total
    int shares = 0;    ///< of one GPU (gres/shard); then `gpus` is 0
    int nodes = 0;     ///< 0: as few as possible
    int min_nodes = 0; ///< as stated by its user, for the priority; 0: as `nodes`
    int cpus_per_gpu = 0;
    int memory_per_gpu_mib = 0;
    /// On each node, regardless of GPUs. As with --ntasks-per-node, more free CPUs than these do
    /// not count when nodes are compared. Required for a job without GPUs.
    int cpus_per_node = 0;
    int memory_per_node_mib = 0;
    std::string model;                 ///< empty: any
    std::vector<std::string> features; ///< all of them required on its nodes
    std::string user;
    std::string account;
    std::vector<int> partitions; ///< indexes, in the requested order
    std::optional<int> qos;
    std::optional<int> reservation;
    std::optional<Chain> chain; ///< unset: killed at its limit
};

/// `usage` for the first job that is invalid on this machine.
Result<void> check(const Machine& machine, const std::vector<Job>& jobs);

/// How a run ended.
enum class Ending {
    completed,
    timed_out, ///< killed at its limit
    cancelled, ///< preempted and not continued
    refused,   ///< never queued: no partition can run it, or its user has too many jobs
    waiting,   ///< queued, but never started
};

struct Outcome {
    Seconds start{0};   ///< of the first link
    Seconds end{0};     ///< of the last link
    Seconds waited{0};  ///< by all links, each from the time it was eligible
    int partition = -1; ///< in which its first link started
    int links = 0;      ///< jobs that ran
    int preempted = 0;  ///< number of times
    int failed = 0;     ///< likewise, for its nodes
    Ending ending = Ending::waiting;

    bool operator==(const Outcome&) const = default;
};

/// The execution of one job of a run.
struct Piece {
    std::size_t job = 0; ///< index into the jobs given
    int link = 1;
    int partition = 0;
    Seconds eligible{0};
    Seconds start{0};
    Seconds end{0};
    std::vector<int> nodes;
    std::vector<int> gpus; ///< whole ones, on each of them
    /// On each of them, if the GPUs of any are shared: the shares, all of them of a whole GPU.
    std::vector<GpuParts> parts{};

    bool operator==(const Piece&) const = default;
};

/// The GPUs of a piece on its node number `i`, a share counting as its fraction.
double gpus_on(const Machine& machine, const Piece& piece, std::size_t i);

} // namespace gpuq::sim
