// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::sim {

/// How a run goes on that needs more than one job's time: the further links.
struct Chain {
    Seconds limit{0}; ///< of each further link
    Seconds asked{0}; ///< for the whole run: no link asks for more than is left; 0: not said
    std::vector<int> partitions; ///< of each further link, in order
    Seconds gap{0};              ///< from a link's end until the next is eligible
    Seconds lost{0}; ///< work that each end costs: since the last checkpoint, and loading it
};

/// A run as its user submits it.
struct Job {
    std::uint64_t id = 0;
    Seconds submit{0};
    Seconds duration{0}; ///< of the work, were it never interrupted
    /// What there is beyond whole seconds, below one, where it is known.
    std::optional<std::chrono::milliseconds> submit_part;
    std::optional<std::chrono::milliseconds> duration_part;
    Seconds limit{0};  ///< 0: the partition's default time
    int gpus = 1;      ///< in all
    int nodes = 0;     ///< 0: as few as can hold them
    int min_nodes = 0; ///< as its user stated it, which its priority counts; 0: as `nodes`
    int cpus_per_gpu = 0;
    int memory_per_gpu_mib = 0;
    /// Of each node, whatever its GPUs; as by --ntasks-per-node, so that nodes are not compared by
    /// how much more of them is free. A job without GPUs needs some.
    int cpus_per_node = 0;
    int memory_per_node_mib = 0;
    std::string model;                 ///< empty: any
    std::vector<std::string> features; ///< its nodes have them all
    std::string user;
    std::string account;
    std::vector<int> partitions; ///< indexes, in the order asked for
    std::optional<int> qos;
    std::optional<int> reservation;
    std::optional<Chain> chain; ///< none: killed at its limit
};

/// `usage` with the first job that makes no sense on this machine.
Result<void> check(const Machine& machine, const std::vector<Job>& jobs);

/// How a run ended.
enum class Ending {
    completed,
    timed_out, ///< killed at its limit
    cancelled, ///< preempted and not continued
    refused,   ///< never queued: no partition may run it, or its user has too many
    waiting,   ///< queued, and never started
};

struct Outcome {
    Seconds start{0};   ///< of the first link
    Seconds end{0};     ///< of the last
    Seconds waited{0};  ///< by all links, each from when it was eligible
    int partition = -1; ///< in which it started
    int links = 0;      ///< jobs that ran
    int preempted = 0;  ///< how often
    Ending ending = Ending::waiting;

    bool operator==(const Outcome&) const = default;
};

/// One job of a run on its GPUs.
struct Piece {
    std::size_t job = 0; ///< index into the jobs given
    int link = 1;
    int partition = 0;
    Seconds eligible{0};
    Seconds start{0};
    Seconds end{0};
    std::vector<int> nodes;
    std::vector<int> gpus; ///< on each of them

    bool operator==(const Piece&) const = default;
};

} // namespace gpuq::sim
