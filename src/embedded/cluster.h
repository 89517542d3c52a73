// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"
#include "embedded/plan.h"
#include "embedded/state.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

/// A real Slurm on this machine, contained in one directory: munge, MariaDB, slurmdbd, slurmctld
/// and one slurmd per node, on the loopback interface only. For an ordinary user it is a private
/// cluster, for root one for all users of the machine.
///
/// Processes are identified by SLURM_CONF=DIR/slurm.conf in their environment, not by pids, which
/// may have been reused.
namespace gpuq::embedded {

struct UpReport {
    State state;
    bool was_up = false; ///< nothing had to be done
    std::chrono::milliseconds took{0};
    std::vector<std::string> notes; ///< messages for the user
};

/// Starts the cluster in `dir` unless it is up. Accounting data and job ids of earlier starts are
/// kept. An error includes a remedy, and leaves no process running. If accounting cannot be
/// started, the cluster is started without it (State::accounting_failure), except under a policy.
Result<UpReport> up(const std::string& dir, const Wishes& wishes);

struct DownReport {
    bool was_up = false;
    int jobs_ended = 0;
    bool purged = false; ///< its files were removed; false if the directory held none
};

enum class Purge { no, yes };

/// Ends all processes of the cluster, including its jobs, and removes its sockets. Accounting data
/// and state are kept unless purged. Succeeds if the cluster is not up.
Result<DownReport> down(const std::string& dir, Purge purge);

struct NodeStatus {
    std::string name;
    std::string state; ///< as reported by Slurm: idle, mixed, allocated, down ...
    bool operator==(const NodeStatus&) const = default;
};

/// Current node states from the controller; empty when it does not respond.
std::vector<NodeStatus> node_states(const Places& places);

struct Status {
    State state;
    std::string slurm_conf;
    bool up = false;               ///< all daemons run and the controller responds
    bool accounting = false;       ///< slurmdbd and its database run
    std::vector<std::string> dead; ///< daemons that should run but do not
    std::vector<NodeStatus> nodes; ///< empty when the controller does not respond
};

/// `missing` when there is no cluster in `dir`; `denied` if other users own it or can write to it.
Result<Status> status(const std::string& dir);

/// Why the cluster with this slurm.conf runs without accounting, in one line; nullopt when it has
/// accounting or the file was not created by `gpuq cluster up`.
std::optional<std::string> accounting_failure(const std::string& slurm_conf);

/// slurm.conf of a running cluster: the caller's own, else the machine's. `missing` when neither is
/// up. Directories that other users own or can write to are skipped.
Result<std::string> find_cluster_conf();

} // namespace gpuq::embedded
