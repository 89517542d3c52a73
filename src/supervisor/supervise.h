// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/node_names.h"
#include "core/run.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/credentials.h"
#include "ports/store.h"
#include "supervisor/link_tmp.h"
#include "supervisor/memory_events.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The process inside the job. Two processes, in truth: the *guardian*, which Slurm started, and
/// its child, the *supervisor*, which owns the program. The guardian is a subreaper: when the
/// supervisor is killed, whatever it had started becomes the guardian's, which kills it, says so in
/// the journal and frees the allocation.
namespace gpuq::supervisor {

/// Whether Slurm has called a job over itself, whose processes may still be ending.
enum class JobEnd { to_come, over };

/// The doors. `cluster` is opened only in short-lived child processes: libslurm may block
/// for ten seconds or call exit().
struct Doors {
    Clock& clock;
    std::function<Result<std::unique_ptr<Cluster>>()> cluster;
    /// The words to execute for a request (runs/environment.h).
    std::function<std::vector<std::string>(const Request&)> program_argv;
    /// Slurm's KillWait: from its TERM to its KILL. Asked once, when the program has been started.
    std::function<std::chrono::seconds()> kill_wait;
    /// The state folder, for the same child processes.
    std::function<Result<std::unique_ptr<Store>>(const std::string& state_dir)> store = {};
    /// Gives a job another comment, for the same child processes; empty: nothing is noted.
    std::function<Result<void>(JobId job, const std::string& comment, JobEnd end)> note = {};
    SecretFiles* secrets = nullptr; ///< null: runs have no tickets
    RemoveTree remove_tree = {};    ///< empty: programs have no TMPDIR of their own
    /// The kernel's counters (memory_events.h). Does not block.
    std::function<MemoryCounts()> memory = memory_counts;
    /// Removes what killed processes of this user have left on this node (posix/leftovers.h).
    std::function<void()> sweep = {};
};

/// How long things are waited for. Tests shorten them.
struct Patience {
    std::chrono::milliseconds new_owner{20'000};    ///< piped input whose client broke off
    std::chrono::milliseconds first_owner{120'000}; ///< piped input of a batch job: its client
    std::chrono::milliseconds stop{10'000};         ///< from TERM to KILL, when the owner stops it
    std::chrono::milliseconds stalled{5'000};       ///< a client that takes no bytes at the end
    std::chrono::milliseconds draining{600'000};    ///< a client that takes them, but slowly
    std::chrono::milliseconds closing{2'000};       ///< for clients to close after the end
    std::chrono::milliseconds leftover_output{500}; ///< pipes held open by what the program left
    std::chrono::milliseconds connecting{2'000};    ///< for a supervisor that begins to listen
    std::chrono::milliseconds disk{20'000};         ///< for a hanging disk at the end
    std::chrono::milliseconds log_retry{5'000};     ///< before a broken log is tried again
    std::chrono::milliseconds unclaimed_shell{600'000}; ///< a shell that nobody comes to
    std::chrono::milliseconds idle_shell{1'800'000};    ///< one that all have left, without work
    std::chrono::milliseconds first_look{10'000}; ///< from the start to asking Slurm for the limit
    std::chrono::milliseconds sampling{1'000};   ///< after the program has begun, which comes first
    std::chrono::milliseconds noted_from{2'000}; ///< what a shorter link used is not noted
    std::chrono::milliseconds noting{5'000};     ///< for Slurm to take the note
    std::chrono::milliseconds memory{5'000};     ///< between looks at what was killed for memory
    std::chrono::milliseconds next_look{60'000}; ///< again, for a chain, which may be preempted
};

struct Options {
    std::string state_dir;
    RunKey key;
    LinkNumber link;
    /// The standard streams are the first connection, and the job is an allocation that has to be
    /// ended. Else: a batch job, which ends with the process.
    bool first = false;
    std::optional<JobId> job;
    std::string node;            ///< this node's name
    std::string partition;       ///< the job's; empty: not known
    NodeNames names;             ///< of its sockets and directories on this node
    std::optional<Time> ends_at; ///< when Slurm said so at the start
    std::string tmp;             ///< TMPDIR of the program; empty: the node's
    std::string sampler;         ///< the executable of `sample` (sampling.h); empty: none
    Patience patience;
};

/// Where the supervisor of the link listens, in the order in which names are tried.
std::vector<std::string> socket_names(const Options& options);

/// Runs the program of a run to its end and returns the exit status of the run. Forks; to be called
/// with a single thread. Everything that goes wrong is part of the answer: the run's `Ending` is in
/// the journal, and said to every client.
int supervise(Doors& doors, const Options& options);

struct Turn;

/// The supervisor proper, in the process that the guardian started. `goodbye` and `guardian` are
/// pipes: the status is written to the one, the other ends when the guardian dies. `turn` is that
/// of a later link of a chain. Ends the process.
[[noreturn]] void run_program(Doors& doors, const Options& options, const std::optional<Turn>& turn,
                              int goodbye, int guardian);

} // namespace gpuq::supervisor
