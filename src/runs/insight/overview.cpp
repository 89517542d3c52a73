// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/overview.h"

#include "core/layout.h"
#include "ports/cluster.h"
#include "runs/insight/holdings.h"
#include "runs/insight/overview_record.h"
#include "runs/insight/own_gpus.h"
#include "runs/records/own_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

constexpr auto k_whole_again = 180s;
constexpr auto k_whole_again_unless_waiting = 300s;
constexpr auto k_forecast_again = 60s;
constexpr auto k_nodes_again = 30s;
constexpr auto k_jobs_again = 15s;
constexpr auto k_anew_again = 5s;
/// Minimum time since the last query before the start or end of one of the user's own runs causes
/// another.
constexpr auto k_changed_again = 15s;
/// A slow query means a busy controller: it is left alone for twenty times as long.
constexpr int k_rest = 20;
/// The querying process may have been stopped, or another user's process may hold the name: after
/// this time, another process queries.
constexpr auto k_missed = 6 * k_nodes_again;
constexpr auto k_never_asked = 10s;
/// A command's own queries: a burst of this many, then one per interval.
constexpr int k_burst = 10;
constexpr auto k_for_each = 5s;
/// How long a list of runs waits for a controller that does not respond, and how long the
/// controller is left alone after that.
constexpr auto k_patience = 3s;
constexpr auto k_left_alone = 30s;
/// Spreads the queries of users, including those with consecutive uids, over this time.
constexpr auto k_turn = 1618ms;
constexpr auto k_turns = 5s;

PoolUse use_of(GpuPool pool, const std::vector<Job>& mine, const Inventory& inventory)
{
    PoolUse use;
    use.nodes = nodes_of(pool, inventory);
    use.pool = std::move(pool);
    set_share(use, mine);
    return use;
}

WaitingLine waiting_line_of(const std::vector<OwnJob>& own)
{
    std::vector<Job> jobs;
    std::transform(own.begin(), own.end(), std::back_inserter(jobs),
                   [](const OwnJob& one) { return one.job; });
    return waiting_line(jobs);
}

/// One GPU of a pool for the default time of its queue; nothing if no queue is open.
std::optional<Job> one_gpu_of(const GpuPool& pool, const std::vector<Partition>& queues)
{
    const auto queue = best_queue(pool, queues);
    if (!queue) {
        return std::nullopt;
    }
    Job job;
    job.partition = queue->name;
    job.walltime = queue->default_time ? queue->default_time : queue->max_time;
    job.gpus = 1;
    job.size.gpus = {{pool.model, 1}};
    job.size.cpus = queue->cpus_per_gpu.value_or(1);
    job.size.memory_mib = queue->memory_mib_per_gpu.value_or(0);
    return job;
}

/// When one GPU becomes free for a new run, of each pool that has none.
void forecast_pools(Overview& overview, const Inventory& inventory, const AllJobs& all, Time now)
{
    std::vector<PoolUse*> full;
    std::vector<Job> imagined;
    for (PoolUse& use : overview.pools) {
        const auto job =
            use.pool.free == 0 ? one_gpu_of(use.pool, inventory.partitions) : std::nullopt;
        if (job) {
            full.push_back(&use);
            imagined.push_back(*job);
        }
    }
    if (full.empty()) {
        return;
    }
    auto forecasts = forecast_imagined(imagined, all, inventory, overview.run_times, now);
    for (std::size_t i = 0; i < full.size(); ++i) {
        full[i]->forecast = std::move(forecasts[i]);
    }
}

const PoolUse* pool_like(const PoolUse& use, const std::vector<PoolUse>& pools)
{
    const auto found = std::find_if(pools.begin(), pools.end(), [&](const PoolUse& one) {
        return one.pool.model == use.pool.model && one.pool.queues == use.pool.queues;
    });
    return found == pools.end() ? nullptr : &*found;
}

/// Takes the forecasts of full pools from an earlier overview. False if it lacks one.
bool took_forecasts(Overview& overview, const Overview& before)
{
    return std::all_of(overview.pools.begin(), overview.pools.end(), [&](PoolUse& use) {
        const PoolUse* const known = pool_like(use, before.pools);
        if (use.pool.free == 0 && known != nullptr) {
            use.forecast = known->forecast;
        }
        return use.pool.free != 0 || use.forecast;
    });
}

Overview without_pool_forecasts(std::string cluster, const Inventory& inventory, const AllJobs& all,
                                std::uint32_t uid, Time now, const RunTimes& run_times)
{
    Overview overview;
    overview.run_times = run_times;
    observe(overview.run_times, all.jobs, now);
    overview.cluster = std::move(cluster);
    overview.uid = uid;
    overview.at = overview.whole_at = overview.jobs_at = now;
    overview.queues = inventory.partitions;
    const std::vector<NextFree> next = next_free(inventory.nodes, all.jobs);
    std::vector<Job> mine;
    std::copy_if(all.jobs.begin(), all.jobs.end(), std::back_inserter(mine),
                 [&](const Job& job) { return job.uid == uid; });
    for (GpuPool& pool : gpu_pools(inventory)) {
        const auto first = std::find_if(next.begin(), next.end(), [&](const NextFree& one) {
            auto queues = one.queues;
            std::sort(queues.begin(), queues.end());
            return one.at && one.count > 0 && one.model == pool.model && queues == pool.queues;
        });
        overview.pools.push_back(use_of(std::move(pool), mine, inventory));
        overview.pools.back().next = first == next.end() ? std::nullopt : first->at;
    }
    if (all.complete) {
        overview.waiting = waiting_line(all.jobs);
    }
    std::set<JobId> wanted;
    std::set<JobId> pending;
    for (const Job& job : mine) {
        if (wants_estimate(job)) {
            wanted.insert(job.id);
        }
        if (could_start(job)) {
            pending.insert(job.id);
        }
    }
    overview.holdings = holdings_of(all.jobs);
    StartEstimates estimates = expected_starts(wanted, all, inventory, now);
    StartForecasts forecasts = forecast_starts(pending, all, inventory, overview.run_times, now);
    note_forecasts(overview.run_times.calibration, forecasts, now);
    for (const Job& job : mine) {
        overview.jobs.push_back(kept_job(job));
        if (job.state == JobState::pending) {
            overview.jobs.back().ahead = jobs_ahead(job, all);
        }
        if (const auto found = estimates.find(job.id); found != estimates.end()) {
            overview.jobs.back().estimate = std::move(found->second);
        }
        if (const auto found = forecasts.find(job.id); found != forecasts.end()) {
            overview.jobs.back().forecast = std::move(found->second);
        }
    }
    return overview;
}

/// The user's own jobs in the line are as new as `jobs_at`, those of others as `whole_at`.
void take_own(Overview& overview, const std::vector<Job>& jobs, Time now)
{
    replace_own_holdings(overview, jobs);
    const auto before = std::exchange(overview.jobs, {});
    for (const Job& job : jobs) {
        overview.jobs.push_back(kept_job(job));
        const auto known = std::find_if(before.begin(), before.end(),
                                        [&](const OwnJob& old) { return old.job.id == job.id; });
        if (known != before.end() && job.state == JobState::pending) {
            overview.jobs.back().ahead = known->ahead;
            overview.jobs.back().estimate = known->estimate;
            overview.jobs.back().forecast = known->forecast;
        }
    }
    if (overview.waiting) {
        const WaitingLine old = waiting_line_of(before);
        const WaitingLine own = waiting_line_of(overview.jobs);
        overview.waiting->jobs = std::max(0, overview.waiting->jobs + own.jobs - old.jobs);
        overview.waiting->gpus = std::max(0, overview.waiting->gpus + own.gpus - old.gpus);
    }
    overview.jobs_at = now;
}

void query_jobs(Overview& overview, Cluster& cluster, Time now)
{
    const auto jobs = cluster.own_jobs();
    if (!jobs) {
        overview.silent = jobs.error().text;
        return;
    }
    overview.silent.clear();
    take_own(overview, *jobs, now);
}

/// Queries the nodes together with the user's own jobs: the GPUs of others are those in use minus
/// the user's own, which would be wrong if one were older than the other. The next free times are
/// kept from the last full query.
void query_nodes(Overview& overview, Cluster& cluster, Time now)
{
    const auto inventory = cluster.inventory();
    const auto jobs = inventory ? cluster.own_jobs() : Result<std::vector<Job>>(inventory.error());
    if (!jobs) {
        overview.silent = jobs.error().text;
        return;
    }
    take_own(overview, *jobs, now);
    overview.queues = inventory->partitions;
    const auto before = std::exchange(overview.pools, {});
    for (GpuPool& pool : gpu_pools(*inventory)) {
        PoolUse& use = overview.pools.emplace_back(use_of(std::move(pool), *jobs, *inventory));
        if (const PoolUse* const known = pool_like(use, before); known != nullptr) {
            use.next = known->next;
            use.forecast = known->forecast;
        }
    }
    drop_ended_holdings(overview, now);
    overview.silent.clear();
    overview.at = now;
}

/// The old data about other users' jobs is too old to keep.
void query_first(Overview& overview, Cluster& cluster, Time now)
{
    Overview first;
    first.cluster = overview.cluster;
    first.uid = overview.uid;
    first.asked_at = overview.asked_at;
    first.allowance_used = overview.allowance_used;
    first.run_times = overview.run_times;
    query_nodes(first, cluster, now);
    if (!first.silent.empty()) {
        overview.silent = first.silent;
        return;
    }
    overview = std::move(first);
}

/// `pools_forecast_at`: when the pools were last forecast.
void query_all(Overview& overview, Cluster& cluster, Clock& clock, std::uint32_t uid, Time now,
               std::optional<Time>& pools_forecast_at)
{
    const auto begin = clock.steady();
    const auto inventory = cluster.inventory();
    const auto all = inventory ? cluster.all_jobs() : Result<AllJobs>(inventory.error());
    if (!all) {
        overview.silent = all.error().text;
        return;
    }
    Overview before =
        std::exchange(overview, without_pool_forecasts(overview.cluster, *inventory, *all, uid, now,
                                                       overview.run_times));
    const bool is_recent = pools_forecast_at && *pools_forecast_at <= now &&
                           now - *pools_forecast_at < k_forecast_again;
    if (!is_recent || !took_forecasts(overview, before)) {
        forecast_pools(overview, *inventory, *all, now);
        pools_forecast_at = now;
    }
    overview.asked_at = before.asked_at;
    overview.allowance_used = before.allowance_used;
    const auto reservations = cluster.reservations();
    overview.reserved =
        reservations ? reserved_gpus(*reservations, inventory->nodes) : std::move(before.reserved);
    overview.took = std::chrono::duration_cast<std::chrono::milliseconds>(clock.steady() - begin);
}

/// Takes the overview that all users share, if it is newer; but the user's own jobs may be known
/// from a later query. False if there is none.
bool took_shared(Overview& overview, const Wish& wish, Time now)
{
    std::optional<Overview> shared = wish.shared ? wish.shared() : std::nullopt;
    if (!shared) {
        return false;
    }
    if (overview.at && *overview.at <= now && *overview.at >= *shared->at) {
        return true;
    }
    shared->asked_at = now;
    shared->allowance_used = overview.allowance_used;
    const Overview before = std::exchange(overview, *std::move(shared));
    if (before.jobs_at && *before.jobs_at <= now && *before.jobs_at > *overview.jobs_at) {
        std::vector<Job> jobs;
        for (const OwnJob& own : before.jobs) {
            jobs.push_back(own.job);
            jobs.back().uid = overview.uid.value_or(0); // not kept with the user's own jobs
        }
        take_own(overview, jobs, *before.jobs_at);
    }
    return true;
}

/// True if a command may make a query of its own, which is then counted.
bool takes_allowance(Overview& overview, Time now)
{
    const Time used = overview.allowance_used.value_or(now);
    const bool was_set_back = used > now + (k_burst + 1) * k_for_each;
    if (!was_set_back && used - now > (k_burst - 1) * k_for_each) {
        return false;
    }
    overview.allowance_used = (was_set_back ? now : std::max(used, now)) + k_for_each;
    return true;
}

} // namespace

OwnJobs own_jobs_now(Store& store, Cluster& cluster, Clock& clock,
                     const std::optional<std::vector<Job>>& answer)
{
    const auto name = cluster.name();
    if (!name) {
        return {{}, {}, name.error().text};
    }
    const Time now = clock.now();
    Overview overview = kept_overview(store, *name);
    const auto kept = [&] { return OwnJobs{overview.jobs, overview.jobs_at, overview.silent}; };
    if (answer) {
        take_own(overview, *answer, now);
        overview.silent.clear();
        return kept();
    }
    const auto age = [&](const std::optional<Time>& at) {
        return at && *at <= now ? std::optional(now - *at) : std::nullopt;
    };
    const bool was_silent = !overview.silent.empty() && age(overview.asked_at) &&
                            *age(overview.asked_at) < k_left_alone;
    if (was_silent || !takes_allowance(overview, now)) {
        return kept();
    }
    const auto jobs = cluster.own_jobs_within(k_patience);
    if (jobs) {
        overview.silent.clear();
        take_own(overview, *jobs, now);
    } else {
        overview.silent = jobs.error().text;
        overview.asked_at = now;
    }
    (void)store.write(layout::overview(*name), to_json(overview));
    return kept();
}

Overview make_overview(std::string cluster, const Inventory& inventory, const AllJobs& all,
                       std::uint32_t uid, Time now, const RunTimes& run_times)
{
    Overview overview =
        without_pool_forecasts(std::move(cluster), inventory, all, uid, now, run_times);
    forecast_pools(overview, inventory, all, now);
    return overview;
}

Due due(const Overview& overview, std::uint32_t uid, Time now)
{
    if (!overview.asked_at || *overview.asked_at > now || now - *overview.asked_at > k_missed) {
        return Due::first;
    }
    const std::chrono::milliseconds turn = std::uint64_t{uid} * k_turn % k_turns;
    if (!overview.whole_at && overview.silent.empty() && now - *overview.asked_at >= turn) {
        return Due::all;
    }
    if (now - *overview.asked_at < k_jobs_again) {
        return Due::nothing;
    }
    const bool one_waits =
        std::any_of(overview.jobs.begin(), overview.jobs.end(),
                    [](const OwnJob& own) { return own.job.state == JobState::pending; });
    const auto rest = std::max<std::chrono::milliseconds>(
        one_waits ? k_whole_again : k_whole_again_unless_waiting, k_rest * overview.took);
    if (!overview.whole_at || now - *overview.whole_at >= rest) {
        return Due::all;
    }
    if (!overview.at || now - *overview.at >= k_nodes_again) {
        return Due::nodes;
    }
    return one_waits ? Due::own_jobs : Due::nothing;
}

Overview kept_overview(Store& store, const std::string& cluster)
{
    return KeptOverview().read(store, cluster);
}

const Overview& KeptOverview::read(Store& store, const std::string& cluster)
{
    auto file = store.read(layout::overview(cluster));
    std::string text = file ? *std::move(file) : "";
    if (!m_overview || text != m_text) {
        Overview none;
        none.cluster = cluster;
        m_overview = overview_from_json(text).value_or(std::move(none));
        m_text = std::move(text);
    }
    return *m_overview;
}

RunTimes learn_run_times(Store& store, const std::string& cluster, const AllJobs& all, Time now)
{
    Overview overview = kept_overview(store, cluster);
    observe(overview.run_times, all.jobs, now);
    (void)store.write(layout::overview(cluster), to_json(overview));
    return overview.run_times;
}

std::string asks_as(Store& store, const std::string& cluster)
{
    return own_names(store).lock(
        fmt::format("overview-{:016x}-{}", std::hash<std::string>{}(store.root()), cluster));
}

void refresh_overview(Store& store, Cluster& cluster, Host& host, Clock& clock, std::uint32_t uid,
                      const Wish& wish)
{
    KeptOverview kept;
    refresh_overview(store, cluster, host, clock, uid, wish, kept);
}

void refresh_overview(Store& store, Cluster& cluster, Host& host, Clock& clock, std::uint32_t uid,
                      const Wish& wish, KeptOverview& kept)
{
    const auto name = cluster.name();
    if (!name) {
        return;
    }
    const Time now = clock.now();
    Overview overview = kept.read(store, *name);
    const auto is_within = [now](const std::optional<Time>& at, auto limit) {
        return at && *at <= now && now - *at < limit;
    };
    const bool reads_shared = wish.anew == Wish::Anew::no ? !is_within(overview.at, k_jobs_again)
                                                          : wish.anew == Wish::Anew::unless_shared;
    if (reads_shared) {
        const auto before = overview.at;
        if (took_shared(overview, wish, now)) {
            if (overview.at != before) {
                (void)store.write(layout::overview(*name), to_json(overview));
            }
            return;
        }
    }
    const bool has_changed = overview.asked_at &&
                             overview.whole_at.value_or(Time{}) < wish.changed &&
                             !is_within(overview.asked_at, k_changed_again);
    const bool anew = wish.anew != Wish::Anew::no || has_changed;
    const Due what =
        anew && !is_within(overview.asked_at, k_anew_again) ? Due::all : due(overview, uid, now);
    if (what == Due::nothing) {
        return;
    }
    const bool missed =
        overview.asked_at ? now - *overview.asked_at > k_missed : now - wish.since > k_never_asked;
    if (!host.hold(asks_as(store, *name)) && !missed && !anew) {
        return; // another process of this user queries
    }
    overview.asked_at = now;
    overview.uid = uid;
    if (what == Due::own_jobs) {
        query_jobs(overview, cluster, now);
    } else if (what == Due::nodes) {
        query_nodes(overview, cluster, now);
    } else if (what == Due::first) {
        query_first(overview, cluster, now);
    } else {
        query_all(overview, cluster, clock, uid, now, kept.pools_forecast_at);
    }
    // A process that can't write the cache has only its own result, and queries again next time.
    (void)store.write(layout::overview(*name), to_json(overview));
}

void complete(RunStatus& status, const Overview& overview)
{
    if (status.state != RunState::unknown && status.state != RunState::submitting &&
        status.state != RunState::waiting) {
        return;
    }
    if (!status.job) {
        return;
    }
    const auto job = std::find_if(overview.jobs.begin(), overview.jobs.end(),
                                  [&](const OwnJob& one) { return one.job.id == status.job->job; });
    if (job == overview.jobs.end()) {
        if (overview.jobs_at && *overview.jobs_at <= status.job->submitted_at) {
            status.state = RunState::waiting; // accepted by Slurm, and not queried since
            status.reason = "None";
        }
        return;
    }
    const Job& slurm = job->job;
    if (slurm.state == JobState::pending) {
        status.state = RunState::waiting;
        status.reason = slurm.reason;
        status.expected_start = slurm.started_at;
        status.estimate = job->estimate;
    } else if (slurm.state == JobState::running || slurm.state == JobState::suspended) {
        status.state = RunState::running;
        status.suspended = slurm.state == JobState::suspended;
        status.started_at = status.started_at ? status.started_at : slurm.started_at;
        status.ends_at = slurm.ends_at;
        status.host = status.host.empty() ? slurm.batch_host : status.host;
    }
}

} // namespace gpuq
