// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"
#include "ports/cluster.h"
#include "runs/asked_for.h"
#include "runs/gpu_models.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// How far the runs of a queue may go on as chains.
struct ChainLimits {
    bool allowed = false; ///< beyond the queue's limit
    std::optional<std::chrono::minutes> link;
    std::optional<int> links;
    std::optional<std::chrono::minutes> gpu_time;
    std::optional<WhenShort> when_short; ///< of a link whose ticket does not last
};

/// What a plan has to know of this machine and of the site.
struct Surroundings {
    /// `plain` and `unreadable` are regular files without the permission to execute them.
    enum class File { missing, plain, unreadable, executable, directory, other };
    enum class Entry { open, unknown, closed };

    std::string work_dir; ///< absolute
    /// What stands at an absolute path; symbolic links are followed.
    std::function<File(const std::string& path)> file;
    /// Whether the nodes certainly have the same at an absolute path, so that what is missing here
    /// is missing there; unset: never. Only called for what looks wrong.
    std::function<bool(const std::string& path)> same_on_nodes;
    std::function<std::optional<std::string>(const std::string& name)> variable;
    /// The text of a script of the user's, as far as it is needed to see what it knows of gpuq;
    /// empty for anything else.
    std::function<std::string(const std::string& path)> text;
    std::vector<std::string> container_command; ///< the site's words, `{image}` among them
    std::vector<Node> nodes;                    ///< only looked at when needs_nodes()
    /// Of each queue of the policy in force, what it says of chains; a queue that is not here may
    /// have any.
    std::map<std::string, ChainLimits> chains;
    /// And whether it takes this person's runs; `unknown`: some accounts', and nobody has said
    /// which account it is. One that is not here is open.
    std::map<std::string, Entry> entry;
    /// And the GPUs that it says it has; of one that is not here, `nodes` tell.
    QueueGpus gpus;
};

/// A run before it has a key: everything decided.
struct Plan {
    Request request;
    JobSpec spec;        ///< without a comment: the key is not made yet
    std::string summary; ///< one line for people: what will be asked for, defaults named
    WhenShort when_short = WhenShort::hold; ///< what becomes of its links without a ticket
};

/// True when the plan depends on the cluster's nodes: `-g 16G+`.
bool needs_nodes(const AskedFor& asked);

/// Fills in every default.
///
/// Where a gpuq policy rules, without `-p`, all of its queues that hold `-t` are asked for, the
/// smallest first: the policy gives the run to the first that takes it.
/// Else without `-p` the queue follows from `-t`: of those that are up and hold it, the one with
/// the smallest limit, the cluster's default one when two are equal. Without either: the default
/// queue, else the smallest. Without `-t`: the queue's default time, else its limit.
///
/// A time beyond the queue's limit makes a chain of links (man gpuq-chain), without `-p` in the
/// queue with the largest limit whose policy allows chains, when the program is known to save
/// checkpoints: it says where (--checkpoint), or its text speaks of gpuq's variables or gpuq.py, or
/// it may begin again from scratch. So does every option that only a chain has. The policy's limits
/// hold for it.
///
/// Where a policy rules, such a program without `-t` and `-p` has the default time of the first
/// queue in its first link, and goes on in that queue with the largest limit until it is done.
///
/// A file of the program's name in the working directory goes first; a `.py` that is not executable
/// gets `python3` in front: the first one in the PATH of the chosen environment.
///
/// `denied`: longer than the queue named (with the queue that takes it) or than every queue;
/// `missing`: no such queue; `usage`: no time can be derived, a variable of --env is not set.
Result<Plan> plan(const AskedFor& asked, const std::vector<Partition>& partitions,
                  const Surroundings& surroundings);

/// The chain as which a run that was none goes on (`gpuq resume`): what `plan` makes of a time
/// beyond the queue's limit, with the checkpoints that the program was told to write. Without
/// `supervisor`. `usage`: nothing tells that the program saves, or it can have no second link.
Result<Chain> chain_to_resume(const Request& request, const std::vector<Partition>& partitions,
                              const Surroundings& surroundings);

/// What a request asks of Slurm, without a comment. Its model of GPU is the request's own.
JobSpec job_spec(const Request& request);

/// Whether the queue `name` takes a run of `walltime`; `denied` as in `plan`. A queue that is not
/// among `partitions`, or a list of several, is left for Slurm to judge.
Result<void> check_walltime(const std::vector<Partition>& partitions, const std::string& name,
                            std::chrono::minutes walltime);

} // namespace gpuq
