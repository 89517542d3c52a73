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

/// A real Slurm on this machine, private to one folder: munge, MariaDB, slurmdbd, slurmctld and a
/// slurmd per node, on the loopback interface only. As an ordinary user a cluster of one's own,
/// as root one for everybody on the machine.
///
/// Processes are known by SLURM_CONF=DIR/slurm.conf in their environment, never by a number that
/// may have been given away since.
namespace gpuq::embedded {

struct UpReport {
    State state;
    bool was_up = false; ///< nothing was to be done
    std::chrono::milliseconds took{0};
    std::vector<std::string> notes; ///< sentences worth telling
};

/// Brings the cluster of `dir` up, or finds it up. Goes on with the accounting and the job ids of
/// an earlier start. An error says what to do, and then nothing has been left running. Without an
/// accounting that can start the cluster comes up all the same (State::accounting_failure), unless
/// it has a policy to enforce.
Result<UpReport> up(const std::string& dir, const Wishes& wishes);

struct DownReport {
    bool was_up = false;
    int jobs_ended = 0;
};

enum class Purge { no, yes };

/// Ends every process of the cluster, of its jobs too, and removes its sockets; accounting and
/// state stay unless purged. Success also when it is not up.
Result<DownReport> down(const std::string& dir, Purge purge);

struct NodeStatus {
    std::string name;
    std::string state; ///< Slurm's word: idle, mixed, allocated, down ...
    bool operator==(const NodeStatus&) const = default;
};

/// As the controller sees them now; empty when it does not answer.
std::vector<NodeStatus> node_states(const Places& places);

struct Status {
    State state;
    std::string slurm_conf;
    bool up = false;               ///< every daemon runs and the controller answers
    bool accounting = false;       ///< slurmdbd and its database run
    std::vector<std::string> dead; ///< daemons that should run and do not
    std::vector<NodeStatus> nodes; ///< empty when the controller does not answer
};

/// `missing` when `dir` holds no cluster.
Result<Status> status(const std::string& dir);

/// Why the cluster of this slurm.conf runs without accounting, one line; nothing when it runs with
/// it, or the file is not one of `gpuq cluster up`.
std::optional<std::string> accounting_failure(const std::string& slurm_conf);

/// slurm.conf of a cluster that is up: the caller's own, then the machine's. `missing` when neither
/// is. A folder of anybody else, or that others can write, is passed over.
Result<std::string> find_cluster_conf();

} // namespace gpuq::embedded
