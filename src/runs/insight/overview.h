// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/clock.h"
#include "ports/host.h"
#include "ports/job.h"
#include "ports/nodes.h"
#include "ports/store.h"
#include "runs/queues/expected_start.h"
#include "runs/queues/forecast.h"
#include "runs/queues/free_gpus.h"
#include "runs/queues/reservations.h"
#include "runs/queues/run_times.h"
#include "runs/status.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Slurm's latest data about GPUs and the user's own jobs. One process of a user on each host
/// queries Slurm; all processes of that user read its result from the state directory.
namespace gpuq {

class Cluster;

/// A job of the user: a run's, or one that gpuq did not start.
struct OwnJob {
    Job job; ///< without data needed only for placement (JobSize beyond nodes and GPUs)
    std::optional<int> ahead;              ///< number of jobs before it; set only by a full query
    std::optional<StartEstimate> estimate; ///< for a pending job; set only by a full query
    std::optional<StartForecast> forecast; ///< likewise
    bool operator==(const OwnJob&) const = default;
};

/// GPUs of one model on the nodes of the same queues, and the user's share.
struct PoolUse {
    GpuPool pool;
    std::optional<int> mine;  ///< of those in use
    std::optional<Time> next; ///< latest time at which a running job releases one
    std::vector<NodeUse> nodes;
    /// Of a run of one of them after all pending jobs, with the default time of its queue. Set only
    /// by a full query, and only if none was free; with 10,000 jobs it takes a while, so full
    /// queries within a minute share it.
    std::optional<StartForecast> forecast{};
    bool operator==(const PoolUse&) const = default;
};

/// GPUs of one model that a running job of any user holds on one node.
struct Holding {
    std::string node;
    std::string model; ///< empty if Slurm knows no type
    int count = 0;
    JobId job;
    std::string called; ///< Job::called
    std::uint32_t uid = 0;
    std::optional<Time> since;
    std::optional<Time> until; ///< the job's time limit; unset: none
    bool operator==(const Holding&) const = default;
};

struct Overview {
    std::string cluster;
    std::optional<Time> at;       ///< of queues and nodes; unset: no answer yet
    std::optional<Time> whole_at; ///< of all users' jobs: positions in the queue, next free GPU
    std::optional<Time> jobs_at;  ///< of `jobs`, which are queried more often
    std::optional<Time> asked_at;
    /// How much of their allowance the commands' own queries have used (own_jobs_now).
    std::optional<Time> allowance_used;
    std::string silent;            ///< why the last query failed; empty: it succeeded
    std::vector<Partition> queues; ///< only name, limit, up and default
    std::vector<PoolUse> pools;
    std::optional<WaitingLine> waiting;
    std::vector<OwnJob> jobs;
    /// The user's own as of `jobs_at`; those of others as of `whole_at`, except those whose job
    /// must have ended since. Sorted by node, then job. On a node, more GPUs may be in use than are
    /// held here: jobs of others have started since, or the site hides them.
    std::vector<Holding> holdings;
    std::vector<ReservedGpus> reserved; ///< now or later; queried with all jobs
    std::optional<std::uint32_t> uid;   ///< the user; unset: no answer yet
    std::chrono::milliseconds took{0};  ///< duration of the last full query
    RunTimes run_times;                 ///< observed by all full queries so far
};

/// Builds an overview from a full query. Pure. `uid`: the user. `run_times`: those observed before.
Overview make_overview(std::string cluster, const Inventory& inventory, const AllJobs& all,
                       std::uint32_t uid, Time now, const RunTimes& run_times = {});

/// The parts of the overview that should be queried again:
/// - queues, nodes and the user's own jobs every 30 s; together, so that the user's share and the
///   GPUs in use are of the same moment;
/// - all jobs, the only large response, every five minutes, or every three if a job of the user is
///   pending; more rarely if the query takes long;
/// - the user's own jobs every 15 s while one of them is pending.
///
/// At most 48 RPCs in five minutes. `first`, if there was no query for a long time: nodes and the
/// user's own jobs. All jobs follow within five seconds, at a moment that depends on `uid`: many
/// users who start at the same time do not query at the same time.
enum class Due { nothing, own_jobs, nodes, first, all };
Due due(const Overview& overview, std::uint32_t uid, Time now);

/// The lock (Host::hold) that the querying process of a user for a cluster holds on a host. It
/// queries for all processes that share its state directory.
std::string asks_as(Store& store, const std::string& cluster);

/// The cached overview; an empty one if there is no valid cache.
Overview kept_overview(Store& store, const std::string& cluster);
/// The same, for repeated calls with one cluster: with 10,000 jobs, parsing takes some
/// milliseconds.
class KeptOverview {
public:
    /// Parses the file only if it has changed since the last call.
    const Overview& read(Store& store, const std::string& cluster);

    /// When refresh_overview() last forecast the pools; unset: not yet.
    std::optional<Time> pools_forecast_at;

private:
    std::string m_text;
    std::optional<Overview> m_overview; ///< of m_text; unset: nothing read yet
};

/// The run times observed so far, including those in `all`, which the caller has just queried; also
/// caches them.
RunTimes learn_run_times(Store& store, const std::string& cluster, const AllJobs& all, Time now);

/// How urgently a caller needs new data.
struct Wish {
    Time since; ///< when the caller started to need it
    /// Query everything, unless there was a query within five seconds.
    enum class Anew { no, unless_shared, always } anew = Anew::no;
    /// When the user's own runs last changed: data from before is queried anew, but at most every
    /// 15 seconds.
    Time changed{};
    /// Reads the overview that a service of the site shares with all users; nothing if there is no
    /// recent one that is to be trusted. It replaces all queries except with Anew::always. Not
    /// called with Anew::no while the cached data is younger than 15 seconds. May be empty.
    std::function<std::optional<Overview>()> shared = {};
};
/// Queries the data that is due and caches it, unless another process of this user on this host
/// does so. Blocks as long as Slurm does. `uid`: the caller's.
void refresh_overview(Store& store, Cluster& cluster, Host& host, Clock& clock, std::uint32_t uid,
                      const Wish& wish);
/// The same, for repeated calls.
void refresh_overview(Store& store, Cluster& cluster, Host& host, Clock& clock, std::uint32_t uid,
                      const Wish& wish, KeptOverview& kept);

/// The user's own jobs, for a command that lists or follows them. Makes one RPC and caches the
/// result; returns the cached jobs if Slurm has recently not responded, or if the allowance for
/// such queries is used up: ten queries at once, then one every five seconds, per user and host.
struct OwnJobs {
    std::vector<OwnJob> jobs;
    std::optional<Time> at; ///< when the jobs were queried; unset: unknown
    std::string silent;     ///< why they are unknown or not newer; empty: no error
};
/// `answer`: jobs that the caller has just queried anyway; no query is made then.
OwnJobs own_jobs_now(Store& store, Cluster& cluster, Clock& clock,
                     const std::optional<std::vector<Job>>& answer = {});

/// Completes a run's status from the overview if the disk alone does not suffice. A run whose job
/// is newer than the overview counts as waiting.
void complete(RunStatus& status, const Overview& overview);

} // namespace gpuq
