// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/run.h"
#include "io/node_names.h"
#include "ports/clock.h"
#include "ports/credentials.h"
#include "ports/store.h"
#include "supervisor/base/link_tmp.h"
#include "supervisor/base/memory_events.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {
class Cluster;
} // namespace gpuq

namespace gpuq::supervisor {

/// Whether Slurm itself has ended the job, whose processes may still be terminating.
enum class JobEnd { to_come, over };
constexpr JobEnd last_of(JobEnd)
{
    return JobEnd::over;
}

/// Interfaces to the outside. `cluster` is opened only in short-lived child processes, because
/// libslurm may block for ten seconds or call exit().
struct Services {
    Clock& clock;
    std::function<Result<std::unique_ptr<Cluster>>()> cluster;
    /// The command line to execute for a request (runs/records/environment.h).
    std::function<std::vector<std::string>(const Request&)> program_argv;
    /// Slurm's KillWait: the time from its TERM to its KILL. Called once, after the program has
    /// been started.
    std::function<std::chrono::seconds()> kill_wait;
    /// Opens the state directory; called in the same child processes.
    std::function<Result<std::unique_ptr<Store>>(const std::string& state_dir)> store = {};
    /// Changes a job's comment; called in the same child processes. Empty: no notes are made.
    std::function<Result<void>(JobId job, const std::string& comment, JobEnd end)> note = {};
    SecretFiles* secrets = nullptr; ///< null: runs have no tickets
    RemoveTree remove_tree = {};    ///< empty: programs have no TMPDIR of their own
    /// The kernel's counters (memory_events.h). Does not block.
    std::function<MemoryCounts()> memory = memory_counts;
    /// Removes the files that were put back for the program (snapshots/view.h). Called
    /// in a child process, when the program has ended.
    std::function<void()> remove_put_back = {};
    /// Removes leftovers of this user's killed processes from this node (posix/leftovers.h).
    std::function<void()> sweep = {};
};

/// Time limits and delays. Tests shorten them.
struct Patience {
    std::chrono::milliseconds new_owner{20'000};    ///< for an owner of piped input to reconnect
    std::chrono::milliseconds first_owner{120'000}; ///< for the first such owner of a batch job
    std::chrono::milliseconds stop{10'000};         ///< from TERM to KILL if the owner stops it
    std::chrono::milliseconds stalled{5'000};       ///< for a client that reads nothing at the end
    std::chrono::milliseconds draining{600'000};    ///< for a client that reads slowly at the end
    std::chrono::milliseconds closing{2'000};       ///< for clients to disconnect after the end
    std::chrono::milliseconds leftover_output{500}; ///< for pipes held open by leftover processes
    std::chrono::milliseconds connecting{2'000};    ///< for a supervisor that is about to listen
    std::chrono::milliseconds disk{20'000};         ///< for a hanging disk at the end
    std::chrono::milliseconds log_retry{5'000};     ///< until a broken log is retried
    std::chrono::milliseconds unclaimed_shell{600'000}; ///< for a shell that no client attaches to
    std::chrono::milliseconds idle_shell{1'800'000};    ///< for a shell without clients and work
    std::chrono::milliseconds first_query{10'000}; ///< until the first query for the time limit
    std::chrono::milliseconds sampling{1'000};     ///< from the start of the program to sampling
    std::chrono::milliseconds noted_from{2'000};   ///< the use of shorter links is not noted
    std::chrono::milliseconds noting{5'000};       ///< for Slurm to accept the note
    std::chrono::milliseconds memory{5'000};       ///< between checks for kills for memory
    std::chrono::milliseconds next_check{60'000};  ///< between further queries in a chain
};

struct Options {
    std::string state_dir;
    RunKey key;
    LinkNumber link;
    /// The standard streams are the first connection, and the job is an allocation that must be
    /// ended. Otherwise it is a batch job, which ends with this process.
    bool first = false;
    std::optional<JobId> job;
    std::string node;            ///< this node's name
    std::string partition;       ///< the job's; empty: unknown
    std::string launch_address;  ///< of the host that started this step; empty: unknown
    NodeNames names;             ///< for its sockets and directories on this node
    std::optional<Time> ends_at; ///< the end according to Slurm at the start
    std::string tmp;             ///< the program's TMPDIR; empty: the node's
    std::string sampler;         ///< the executable that provides `sample` (sampling.h); empty:
                                 ///< none
    Patience patience;
};

/// Starts the log of this process, which records itself as `process`, in the link's file: warnings,
/// or as GPUQ_LOG requests. Replaces that of the process which this one was forked from.
void start_log(const Options& options, const std::string& process);
/// The same for a process that knows only the link's directory.
void start_log(const std::string& link_directory, const std::string& process);

/// The names of the link's supervisor socket, in the order in which they are tried.
std::vector<std::string> socket_names(const Options& options);

} // namespace gpuq::supervisor
