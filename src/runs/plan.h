// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"
#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/queues/gpu_models.h"
#include "runs/run_parameters.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// The policy's limits for chains in a queue.
struct ChainLimits {
    bool allowed = false; ///< beyond the queue's time limit
    std::optional<std::chrono::minutes> link;
    std::optional<int> links;
    std::optional<std::chrono::minutes> gpu_time;
    std::optional<WhenShort> when_short; ///< of a link whose ticket does not last
};

/// Facts about this host and the site that a plan needs.
struct SiteContext {
    /// `plain` and `unreadable` are regular files without execute permission.
    enum class File { missing, plain, unreadable, executable, directory, other };
    enum class Entry { open, unknown, closed };

    std::string work_dir; ///< absolute
    std::string host;     ///< the name of this host for Slurm; empty: unknown
    Time now;             ///< for limits that are dates
    /// The kind of file at an absolute path; symbolic links are followed.
    std::function<File(const std::string& path)> file;
    /// True if the nodes certainly see the same files at an absolute path, so that a file missing
    /// on this host is missing on them as well; unset: never true. Only called for a path that
    /// looks wrong.
    std::function<bool(const std::string& path)> same_on_nodes;
    std::function<std::optional<std::string>(const std::string& name)> variable;
    /// The text of the user's script, as much of it as is needed to see whether it uses gpuq; empty
    /// for other files.
    std::function<std::string(const std::string& path)> text;
    std::vector<std::string> container_command; ///< the site's command, including `{image}`
    bool network = false;    ///< the run's supervisor is to accept clients over the network
    std::vector<Node> nodes; ///< only used if needs_nodes()
    /// The chain limits of each queue in the current policy; a queue without an entry allows any
    /// chain.
    std::map<std::string, ChainLimits> chains;
    /// Whether this user may submit to the queue. `unknown`: only some accounts may, and the user's
    /// account is not known. A queue without an entry is open.
    std::map<std::string, Entry> entry;
    /// The GPUs that each queue declares; for a queue without an entry, `nodes` is used.
    QueueGpus gpus;
};

/// A complete run, except for its key.
struct Plan {
    Request request;
    JobSpec spec;        ///< without a comment: there is no key yet
    std::string summary; ///< one line for the user: the requested resources, defaults marked
    WhenShort when_short = WhenShort::hold; ///< how to handle links without a valid ticket
};

/// True if the plan depends on the cluster's nodes: `-g 16G+`, `shard:1`, `mig:1g.10gb`.
bool needs_nodes(const RunParameters& parameters);

/// Fills in all defaults.
///
/// Under a gpuq policy and without `-p`, the request names all queues of the policy that allow
/// `-t`, smallest limit first: the policy puts the run into the first one that accepts it.
/// Otherwise, without `-p`, the queue follows from `-t`: the smallest limit among the queues that
/// are up and allow it (if none is, of those that are down but accept jobs), the cluster's default
/// queue first among equals. Without either: the default
/// queue, else the one with the smallest limit. Queues that are known to have no GPUs, if the run
/// needs some, that need more nodes, that are restricted, or that take no jobs from this host are
/// not chosen. Without `-t`: the queue's default time, else its limit.
///
/// A time beyond the queue's limit makes the run a chain of links (man gpuq-chain). Without `-p` it
/// goes to the queue with the largest limit whose policy allows chains. The program must be known
/// to save checkpoints: --checkpoint is given, its text uses gpuq's variables or gpuq.py, or it may
/// start again from scratch. Each option that applies only to chains makes the run a chain as well.
/// The policy's limits apply.
///
/// Under a policy, such a program without `-t` and `-p` gets the first queue's default time for its
/// first link, and then runs until it is finished in the queue with the largest limit that allows
/// chains.
///
/// An executable file with the program's name in the working directory takes precedence over PATH.
/// A `.py` file that is not executable, or has no `#!` line, is run by `python3`, found in the PATH
/// of the chosen environment.
///
/// `denied`: the time exceeds the limit of the named queue (the message names a queue that allows
/// it) or of all queues; `missing`: no such queue; `usage`: no time can be derived, a variable of
/// --env is not set, or options contradict each other.
Result<Plan> plan(const RunParameters& parameters, const std::vector<Partition>& partitions,
                  const SiteContext& site_context);

/// The chain that `gpuq resume` makes of a run that was not one: the chain that `plan` would make
/// for a time beyond the queue's limit, with the checkpoints that the program writes. `supervisor`
/// is not set. `usage`: the program is not known to save checkpoints, or it can't have a second
/// link.
Result<Chain> chain_to_resume(const Request& request, const std::vector<Partition>& partitions,
                              const SiteContext& site_context);

/// The request as a Slurm job, without a comment. The GPU model is the request's own.
JobSpec job_spec(const Request& request);

/// The comment with which a link is submitted: job_comment(), and whether it works on a sweep.
std::string submitted_comment(const Run& run, LinkNumber link);

/// Checks that the queue `name` allows `walltime`; `denied` as in `plan`. A queue that is not in
/// `partitions`, or a list of queues, is left to Slurm to check.
Result<void> check_walltime(const std::vector<Partition>& partitions, const std::string& name,
                            std::chrono::minutes walltime);

} // namespace gpuq
