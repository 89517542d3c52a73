// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/host.h"
#include "ports/store.h"
#include "runs/expected_start.h"
#include "runs/free_gpus.h"
#include "runs/status.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What Slurm said last of GPUs and of one's own jobs: one process of a user asks, on each host,
/// and all of that user's read what it keeps in the state folder.
namespace gpuq {

/// A job of one's own: of a run, or one that gpuq did not start.
struct OwnJob {
    Job job; ///< without what only a placement needs (JobSize beyond nodes and GPUs)
    std::optional<int> ahead;              ///< jobs that go before it; only after a whole look
    std::optional<StartEstimate> estimate; ///< of a pending one; only after a whole look
    bool operator==(const OwnJob&) const = default;
};

/// GPUs of one model in one place, and whose they are.
struct PoolUse {
    GpuPool pool;
    std::optional<int> mine;  ///< of those in use
    std::optional<Time> next; ///< when a running job leaves one, at the latest
    std::vector<std::string> nodes;
    bool operator==(const PoolUse&) const = default;
};

struct Overview {
    std::string cluster;
    std::optional<Time> at;       ///< of queues and nodes; unset: there never was an answer
    std::optional<Time> whole_at; ///< of the jobs of all: places, next free
    std::optional<Time> jobs_at;  ///< of `jobs`, which are asked for more often
    std::optional<Time> asked_at;
    /// How far the questions of commands have used up their allowance (own_jobs_now).
    std::optional<Time> allowance_used;
    std::string silent;            ///< why the last question had no answer; empty: it had one
    std::vector<Partition> queues; ///< name, times, up, default; nothing else
    std::vector<PoolUse> pools;
    std::optional<WaitingLine> waiting;
    std::vector<OwnJob> jobs;
    std::chrono::milliseconds took{0}; ///< the last whole look
};

/// Out of a whole look. Pure. `uid`: whose jobs are one's own.
Overview make_overview(std::string cluster, const Inventory& inventory, const AllJobs& all,
                       std::uint32_t uid, Time now);

/// What of Slurm's answers is old enough to be asked for again: queues, nodes and one's own jobs,
/// so that what is mine is of the same moment as what is in use, every 30 s; the jobs of all, the
/// one large answer, every five minutes, of somebody whose job waits every three, and slower where
/// it takes long; one's own jobs every 15 s while one of them waits. At most 46 RPCs in five
/// minutes. `first`, where nobody has asked for long: nodes and one's own jobs. The jobs of all
/// follow within five seconds, by `uid`: many people who begin at once don't ask for them at once.
enum class Due { nothing, own_jobs, nodes, first, all };
Due due(const Overview& overview, std::uint32_t uid, Time now);

/// What the one process of a user that asks for a cluster holds on a host (Host::hold): it asks for
/// those who share its state folder, where the answer is kept.
std::string asks_as(Store& store, const std::string& cluster);

/// The overview that is kept; an empty one when there is none that can be read.
Overview kept_overview(Store& store, const std::string& cluster);

/// How much somebody wants a new answer.
struct Wish {
    Time since;        ///< when the caller began to want one
    bool anew = false; ///< all of it, unless it was asked for within five seconds
};
/// Asks what is due and keeps it, unless another process of this user on this host is the one that
/// asks. Blocks as long as Slurm does. `uid`: the caller's.
void refresh_overview(Store& store, Cluster& cluster, Host& host, Clock& clock, std::uint32_t uid,
                      const Wish& wish);

/// One's own jobs, for a command that lists them or follows one: asked for, one RPC, and kept for
/// the others; or those that are kept, where Slurm has just been silent or the allowance of such
/// commands is used up: ten questions at once, then one every five seconds, for each user and host.
struct OwnJobs {
    std::vector<OwnJob> jobs;
    std::optional<Time> at; ///< of which moment they are; unset: they are not known
    std::string silent;     ///< why they are not known, or not newer; empty: all is well
};
/// `answer`: what the caller has just been told, and asked for anyway; nothing is asked then.
OwnJobs own_jobs_now(Store& store, Cluster& cluster, Clock& clock,
                     const std::optional<std::vector<Job>>& answer = {});

/// What the overview knows of a run of which the disk alone does not know enough. One whose job is
/// younger than the overview waits, as far as anybody has been told.
void complete(RunStatus& status, const Overview& overview);

} // namespace gpuq
