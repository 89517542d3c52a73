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

/// Source of the program's standard input.
enum class Input {
    none,     ///< /dev/null: --detach, or the client had no input
    pipe,     ///< the client's piped input; its end of file is passed on. If the client dies before
              ///< that, the run ends as failed
    terminal, ///< typed by the attached user; losing the client does not end the input
};

/// Size in character cells.
struct TerminalSize {
    int rows = 24;
    int columns = 80;
    bool operator==(const TerminalSize&) const = default;
};
/// True if it fits into a winsize (ioctl_tty(2)).
constexpr bool is_valid(const TerminalSize& size)
{
    constexpr int k_most = 0xffff;
    return size.rows >= 0 && size.rows <= k_most && size.columns >= 0 && size.columns <= k_most;
}

/// Runs the program on a pseudo-terminal: input is typed, stdout and stderr are one stream.
struct Pty {
    TerminalSize size;  ///< until a client attaches with another size
    bool shell = false; ///< `gpuq shell`: ends when no client attaches or returns in time
    bool operator==(const Pty&) const = default;
};

/// The signal that warns a program that its link is about to end.
enum class Notice {
    automatic, ///< USR1 if the program handles it, else USR2
    usr1,
    usr2,
    term,
    none, ///< no signal, only the file GPUQ_STOP_FILE
};
constexpr Notice last_of(Notice)
{
    return Notice::none;
}

/// How a run continues beyond one Slurm job. The time limit of its request is the total of all
/// links.
struct Chain {
    std::chrono::seconds link{0};  ///< time limit of a link
    std::chrono::seconds first{0}; ///< time limit of the first link, if different; else 0
    std::string supervisor;        ///< absolute path of gpuq-supervisor, which the next link starts
    /// Checkpoints of the program: a glob, absolute or relative to the working directory. Empty:
    /// GPUQ_CHECKPOINT_DIR.
    std::string checkpoint;
    std::vector<std::string> resume_args; ///< arguments to append; `{}` is the checkpoint
    std::vector<std::string> valid;       ///< the user's check command; `{}` is the checkpoint
    Notice notice = Notice::automatic;
    bool aware = false;        ///< the program itself reads GPUQ_STOP_FILE or GPUQ_DEADLINE
    bool from_scratch = false; ///< a link may start without a checkpoint
    std::optional<int> max_links;
    std::optional<std::chrono::minutes> gpu_time; ///< total of all GPUs and links
    std::optional<Time> until;
    bool operator==(const Chain&) const = default;
};

/// Of a run that works on a sweep: it takes one try after the other.
struct SweepWorker {
    RunKey sweep;
    int number = 1; ///< of the worker
    bool operator==(const SweepWorker&) const = default;
};

/// The environment of the program, recorded so that later links use the same one.
struct Setup {
    std::vector<std::pair<std::string, std::string>> env; ///< --env NAME=VALUE
    std::vector<std::string> sources;                     ///< --source, in order; absolute paths
    std::vector<std::string> modules;                     ///< --module, in order
    std::optional<std::string> conda;                     ///< environment name or prefix
    std::optional<std::string> venv;                      ///< --venv: absolute path
    std::optional<std::string> container;                 ///< image
    /// The site's command in front of the program; `{image}` is replaced by the image.
    std::vector<std::string> container_command;

    /// The rest for a process that already runs in the environment: its variables and container.
    Setup inside() const { return {env, {}, {}, {}, {}, container, container_command}; }
    bool operator==(const Setup&) const = default;
};

/// A user's request with all defaults filled in. Immutable once recorded in run.json, except for
/// the time limit: `gpuq extend` writes a new one to walltime.json, which readers (runs/evidence.h)
/// substitute.
struct Request {
    std::vector<std::string> program; ///< program and arguments as executed (train.py resolved)
    std::string name;                 ///< never only digits
    std::string work_dir;             ///< absolute
    std::chrono::minutes walltime{0};
    std::string queue; ///< Slurm partition
    GpuRequest gpus;
    int nodes = 1;
    /// Slurm tasks (ranks) per node; unset: the program runs once per node.
    std::optional<int> tasks_per_node;
    std::optional<int> gpus_per_task;        ///< unset: each task sees all GPUs of its node
    std::optional<int> cpus;                 ///< per node; unset: the queue's share per GPU
    std::optional<std::uint64_t> memory_mib; ///< per node; unset: the queue's share per GPU
    std::optional<std::string> account;
    std::optional<std::string> qos;
    std::optional<JobId> after; ///< start only after this job has succeeded
    Input input = Input::none;
    std::optional<Pty> pty; ///< if set, `input` is `terminal`
    std::optional<Chain> chain;
    Setup setup;
    std::optional<std::string> slurm_options; ///< --slurm='...', unparsed
    std::optional<SweepWorker> sweep;
    bool network = false; ///< its supervisor accepts clients over the network (`direct: network`)

    bool operator==(const Request&) const = default;
};

/// Number of program instances per node.
inline int tasks_on_node(const Request& request)
{
    return request.tasks_per_node.value_or(1);
}

/// True when the program is started by Slurm as several tasks, each with its rank.
inline bool has_ranks(const Request& request)
{
    return request.nodes > 1 || request.tasks_per_node.has_value();
}

/// The client's soft resource limits, which the program gets as well; values as in setrlimit(2),
/// with the largest number for "unlimited". nullopt: unknown.
struct SoftLimits {
    std::optional<std::uint64_t> core, stack;
    bool operator==(const SoftLimits&) const = default;
};

/// A recorded run: runs/KEY/run.json.
struct Run {
    RunKey key;
    std::string cluster; ///< ClusterName in slurm.conf
    std::string user;
    std::string host;    ///< submission host
    std::string version; ///< gpuq version that created it
    Time submitted_at;
    Request request;
    std::vector<std::string> environment; ///< the client's, NAME=VALUE; mode 0600 on disk
    SoftLimits limits = {};               ///< the client's
};

/// Why a link, and with it a run, ended.
enum class Cause {
    finished,    ///< the program exited, with any status
    crashed,     ///< the program was killed by a signal not sent by gpuq
    time_limit,  ///
    memory,      ///< killed by the kernel or Slurm for exceeding memory
    gpu_memory,  ///< the program exited after reporting that GPU memory was exhausted
    node_failed, ///
    preempted,   ///
    stopped,     ///< by its owner
    cancelled,   ///< by another user, or by scancel
    not_started, ///< program missing or not executable, no directory, environment failed
    input_lost,  ///< the client was lost while its piped input was still open
    lost,        ///< the supervisor died, or the cause is unknown
};
constexpr Cause last_of(Cause)
{
    return Cause::lost;
}
/// A cause that only a newer supervisor knows.
constexpr Cause unknown_of(Cause)
{
    return Cause::lost;
}

/// How a run, or a link of it, ended.
struct Ending {
    int status = 0; ///< exit status of `gpuq run`
    Cause cause = Cause::finished;
    std::string detail; ///< one sentence for users; may be empty
    Time at;
    bool continues = false; ///< only this link has ended; the next one continues the run

    bool operator==(const Ending&) const = default;
};

} // namespace gpuq
