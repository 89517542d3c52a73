// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"
#include "core/ids.h"
#include "core/key.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuq {

/// Where the program's standard input comes from.
enum class Input {
    none,     ///< /dev/null: --detach, or the client had none
    pipe,     ///< the client's piped input: its end of file is the program's; if the client dies
              ///< before that, the run ends as failed
    terminal, ///< what a person types while attached; a lost client is silence, not an end
};

/// Cells of a terminal.
struct TerminalSize {
    int rows = 24;
    int columns = 80;
    bool operator==(const TerminalSize&) const = default;
};

/// A program on a terminal of its own: a person types, stdout and stderr are one stream.
struct Pty {
    TerminalSize size;  ///< until somebody attaches with another
    bool shell = false; ///< `gpuq shell`: ends when nobody comes to it, or comes back
    bool operator==(const Pty&) const = default;
};

/// Which signal tells a program that its link is about to end.
enum class Notice {
    automatic, ///< USR1, where it is handled, else USR2
    usr1,
    usr2,
    term,
    none, ///< only the file GPUQ_STOP_FILE
};

/// How a run goes on beyond one Slurm job. The walltime of its request is that of all
/// links together.
struct Chain {
    std::chrono::seconds link{0};  ///< length of a link
    std::chrono::seconds first{0}; ///< of the first one, where it is another; else 0
    std::string supervisor;        ///< absolute path: who submits the next link starts this one
    /// Where the program leaves its checkpoints: a glob, absolute or below the working directory;
    /// empty: GPUQ_CHECKPOINT_DIR.
    std::string checkpoint;
    std::vector<std::string> resume_args; ///< added to the program; `{}` stands for the checkpoint
    std::vector<std::string> valid;       ///< the user's own check; `{}` stands for the checkpoint
    Notice notice = Notice::automatic;
    bool aware = false;        ///< the program reads GPUQ_STOP_FILE or GPUQ_DEADLINE itself
    bool from_scratch = false; ///< may start again without a checkpoint
    std::optional<int> max_links;
    std::optional<std::chrono::minutes> gpu_time; ///< of all GPUs and links together
    std::optional<Time> until;
    bool operator==(const Chain&) const = default;
};

/// What a person asked for, with every default filled in. Immutable once recorded in
/// run.json, but for the walltime: `gpuq extend` keeps a later one in walltime.json, which readers
/// (runs/evidence.h) put in its place.
struct Request {
    std::vector<std::string> program; ///< program and arguments, as executed (train.py resolved)
    std::string name;                 ///< never digits alone
    std::string work_dir;             ///< absolute
    std::chrono::minutes walltime{0};
    std::string queue; ///< Slurm partition
    GpuRequest gpus;
    int nodes = 1;
    /// Tasks of Slurm's, ranks, on each node; unset: the program once on each.
    std::optional<int> tasks_per_node;
    std::optional<int> gpus_per_task;        ///< unset: each task sees all GPUs of its node
    std::optional<int> cpus;                 ///< per node; unset: the queue's share per GPU
    std::optional<std::uint64_t> memory_mib; ///< per node; unset: the queue's share per GPU
    std::optional<std::string> account;
    std::optional<std::string> qos;
    std::optional<JobId> after; ///< start only when this job has ended well
    Input input = Input::none;
    std::optional<Pty> pty; ///< set: `input` is `terminal`
    std::optional<Chain> chain;

    // The chosen environment, recorded so that a later link gets the same one.
    std::vector<std::pair<std::string, std::string>> env; ///< --env NAME=VALUE
    std::vector<std::string> sources;                     ///< --source, in order; absolute paths
    std::vector<std::string> modules;                     ///< --module, in order
    std::optional<std::string> conda;                     ///< environment name or prefix
    std::optional<std::string> venv;                      ///< --venv: an absolute path
    std::optional<std::string> container;                 ///< image
    std::vector<std::string> container_command;           ///< site's words before the program;
                                                          ///< `{image}` stands for the image
    std::optional<std::string> slurm_options;             ///< --slurm='...', as typed

    bool operator==(const Request&) const = default;
};

/// How often the program runs on each node.
inline int tasks_on_node(const Request& request)
{
    return request.tasks_per_node.value_or(1);
}

/// The program is one of several that Slurm starts and that are told which they are.
inline bool has_ranks(const Request& request)
{
    return request.nodes > 1 || request.tasks_per_node.has_value();
}

/// Soft resource limits of the client that its program gets as well, as setrlimit(2) has them: the
/// largest number is none. nullopt: not known.
struct SoftLimits {
    std::optional<std::uint64_t> core, stack;
    bool operator==(const SoftLimits&) const = default;
};

/// A run as recorded: runs/KEY/run.json.
struct Run {
    RunKey key;
    std::string cluster; ///< the cluster's name (ClusterName)
    std::string user;
    std::string host;    ///< where it was submitted
    std::string version; ///< gpuq that made it
    Time submitted_at;
    Request request;
    std::vector<std::string> environment; ///< NAME=VALUE of the client, 0600 on disk
    SoftLimits limits = {};               ///< of the client
};

/// Why a link, and with it a run, ended.
enum class Cause {
    finished,    ///< the program left by itself, with whatever status
    crashed,     ///< the program died by a signal that nobody we know sent
    time_limit,  ///
    memory,      ///< the kernel or Slurm killed it for memory
    gpu_memory,  ///< it left saying that the GPU's memory was exhausted
    node_failed, ///
    preempted,   ///
    stopped,     ///< by its owner
    cancelled,   ///< by somebody else, or by scancel
    not_started, ///< program missing or not executable, no folder, environment failed
    input_lost,  ///< its piped input broke off with the client
    lost,        ///< the supervisor died, or nobody can say
};

/// How a run, or a link of it, ended.
struct Ending {
    int status = 0; ///< what `gpuq run` exits with
    Cause cause = Cause::finished;
    std::string detail; ///< one sentence for people, may be empty
    Time at;
    bool continues = false; ///< only this link has ended; the next one goes on

    bool operator==(const Ending&) const = default;
};

} // namespace gpuq
