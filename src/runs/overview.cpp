// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/overview.h"

#include "core/layout.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr int k_version = 2;
constexpr auto k_whole_again = 180s;
constexpr auto k_whole_again_unless_waiting = 300s;
constexpr auto k_nodes_again = 30s;
constexpr auto k_jobs_again = 15s;
constexpr auto k_anew_again = 5s;
/// A look that takes long is a busy controller: it is given twenty times as long to rest.
constexpr int k_rest = 20;
/// Who asks may have been stopped, or be somebody else's process that has taken the name: after so
/// long another one does.
constexpr auto k_missed = 6 * k_nodes_again;
constexpr auto k_never_asked = 10s;
/// Users are apart by so much, also those whose numbers follow each other, within so much.
constexpr auto k_turn = 1618ms;
constexpr auto k_turns = 5s;

template <typename Value>
json of(const std::optional<Value>& value)
{
    return value ? json(*value) : json();
}

json of(const std::optional<Time>& time)
{
    return time ? json(std::chrono::floor<std::chrono::seconds>(*time).time_since_epoch().count())
                : json();
}

std::optional<Time> time_in(const json& value)
{
    return value.is_null() ? std::nullopt
                           : std::optional(Time(std::chrono::seconds(value.get<std::int64_t>())));
}

std::optional<int> number_in(const json& value)
{
    return value.is_null() ? std::nullopt : std::optional(value.get<int>());
}

json of(const PoolUse& use)
{
    const GpuPool& pool = use.pool;
    return {{"model", pool.model},       {"queues", pool.queues},
            {"total", pool.total},       {"free", of(pool.free)},
            {"in_use", of(pool.in_use)}, {"down", pool.down},
            {"blocked", pool.blocked},   {"mine", of(use.mine)},
            {"next", of(use.next)},      {"most", of(pool.most_on_one_node)}};
}

PoolUse pool_in(const json& value)
{
    PoolUse use;
    use.pool.model = value.at("model").get<std::string>();
    use.pool.queues = value.at("queues").get<std::vector<std::string>>();
    use.pool.total = value.at("total").get<int>();
    use.pool.free = number_in(value.at("free"));
    use.pool.in_use = number_in(value.at("in_use"));
    use.pool.down = value.at("down").get<int>();
    use.pool.blocked = value.at("blocked").get<int>();
    use.pool.most_on_one_node = number_in(value.at("most"));
    use.mine = number_in(value.at("mine"));
    use.next = time_in(value.at("next"));
    return use;
}

json of(const OwnJob& job)
{
    return {{"id", job.id.value},      {"state", static_cast<int>(job.state)},
            {"reason", job.reason},    {"started", of(job.started_at)},
            {"ends", of(job.ends_at)}, {"host", job.host},
            {"ahead", of(job.ahead)}};
}

OwnJob job_in(const json& value)
{
    OwnJob job;
    job.id = JobId{value.at("id").get<std::uint32_t>()};
    const int state = value.at("state").get<int>();
    job.state = state >= 0 && state < static_cast<int>(JobState::unknown)
                    ? static_cast<JobState>(state)
                    : JobState::unknown;
    job.reason = value.at("reason").get<std::string>();
    job.started_at = time_in(value.at("started"));
    job.ends_at = time_in(value.at("ends"));
    job.host = value.at("host").get<std::string>();
    job.ahead = number_in(value.at("ahead"));
    return job;
}

json of(const Partition& queue)
{
    return {{"name", queue.name},
            {"up", queue.up},
            {"default", queue.is_default},
            {"minutes", queue.max_time ? json(queue.max_time->count()) : json()}};
}

Partition queue_in(const json& value)
{
    Partition queue;
    queue.name = value.at("name").get<std::string>();
    queue.up = value.at("up").get<bool>();
    queue.is_default = value.at("default").get<bool>();
    if (const json& minutes = value.at("minutes"); !minutes.is_null()) {
        queue.max_time = std::chrono::minutes(minutes.get<std::int64_t>());
    }
    return queue;
}

template <typename Value>
json list_of(const std::vector<Value>& values)
{
    json list = json::array();
    for (const Value& value : values) {
        list.push_back(of(value));
    }
    return list;
}

json document(const Overview& overview)
{
    return {{"v", k_version},
            {"cluster", overview.cluster},
            {"at", of(overview.at)},
            {"whole_at", of(overview.whole_at)},
            {"jobs_at", of(overview.jobs_at)},
            {"asked_at", of(overview.asked_at)},
            {"silent", overview.silent},
            {"queues", list_of(overview.queues)},
            {"pools", list_of(overview.pools)},
            {"waiting_jobs", overview.waiting ? json(overview.waiting->jobs) : json()},
            {"waiting_gpus", overview.waiting ? json(overview.waiting->gpus) : json()},
            {"jobs", list_of(overview.jobs)},
            {"took_ms", overview.took.count()}};
}

Overview overview_in(const json& value)
{
    Overview overview;
    overview.cluster = value.at("cluster").get<std::string>();
    overview.at = time_in(value.at("at"));
    overview.whole_at = time_in(value.at("whole_at"));
    overview.jobs_at = time_in(value.at("jobs_at"));
    overview.asked_at = time_in(value.at("asked_at"));
    overview.silent = value.at("silent").get<std::string>();
    for (const json& queue : value.at("queues")) {
        overview.queues.push_back(queue_in(queue));
    }
    for (const json& pool : value.at("pools")) {
        overview.pools.push_back(pool_in(pool));
    }
    if (const auto jobs = number_in(value.at("waiting_jobs"))) {
        overview.waiting = WaitingLine{*jobs, value.at("waiting_gpus").get<int>()};
    }
    for (const json& job : value.at("jobs")) {
        overview.jobs.push_back(job_in(job));
    }
    overview.took = std::chrono::milliseconds(value.at("took_ms").get<std::int64_t>());
    return overview;
}

OwnJob own(const Job& job)
{
    OwnJob own;
    own.id = job.id;
    own.state = job.state;
    own.reason = job.reason;
    own.started_at = job.started_at;
    own.ends_at = job.ends_at;
    own.host = job.batch_host;
    return own;
}

/// The GPUs of a pool that these jobs hold, told by node.
int held_by(const std::vector<Job>& jobs, const GpuPool& pool, const Inventory& inventory)
{
    int held = 0;
    for (const Job& job : jobs) {
        for (const HeldGpus& gpus : job.held) {
            const auto node = std::find_if(inventory.nodes.begin(), inventory.nodes.end(),
                                           [&](const Node& one) { return one.name == gpus.node; });
            auto queues =
                node == inventory.nodes.end() ? std::vector<std::string>{} : node->partitions;
            std::sort(queues.begin(), queues.end());
            held += gpus.model == pool.model && queues == pool.queues ? gpus.count : 0;
        }
    }
    return held;
}

/// A slurmctld that has just started knows for some seconds which jobs there are, and not which
/// GPUs they have.
PoolUse use_of(GpuPool pool, const std::vector<Job>& mine, const Inventory& inventory)
{
    PoolUse use;
    use.mine = held_by(mine, pool, inventory);
    use.pool = std::move(pool);
    if (use.pool.in_use && *use.mine > *use.pool.in_use) {
        use.pool.in_use = use.pool.free = use.pool.most_on_one_node = std::nullopt;
    }
    return use;
}

void take_own(Overview& overview, const std::vector<Job>& jobs, Time now)
{
    const auto before = std::exchange(overview.jobs, {});
    for (const Job& job : jobs) {
        overview.jobs.push_back(own(job));
        const auto known = std::find_if(before.begin(), before.end(),
                                        [&](const OwnJob& old) { return old.id == job.id; });
        if (known != before.end() && job.state == JobState::pending) {
            overview.jobs.back().ahead = known->ahead;
        }
    }
    overview.jobs_at = now;
}

void ask_for_jobs(Overview& overview, Cluster& cluster, Time now)
{
    const auto jobs = cluster.own_jobs();
    if (!jobs) {
        overview.silent = jobs.error().text;
        return;
    }
    overview.silent.clear();
    take_own(overview, *jobs, now);
}

/// One's own jobs with them: what others hold is what is in use less what is one's own, and is
/// wrong where one is older than the other. Which comes next stays as it was told last.
void ask_for_nodes(Overview& overview, Cluster& cluster, Time now)
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
        const auto known = std::find_if(before.begin(), before.end(), [&](const PoolUse& old) {
            return old.pool.model == pool.model && old.pool.queues == pool.queues;
        });
        const auto next = known == before.end() ? std::nullopt : known->next;
        overview.pools.push_back(use_of(std::move(pool), *jobs, *inventory));
        overview.pools.back().next = next;
    }
    overview.silent.clear();
    overview.at = now;
}

/// What was known of the jobs of others is of another day.
void ask_first(Overview& overview, Cluster& cluster, Time now)
{
    Overview first;
    first.cluster = overview.cluster;
    first.asked_at = overview.asked_at;
    ask_for_nodes(first, cluster, now);
    if (!first.silent.empty()) {
        overview.silent = first.silent;
        return;
    }
    overview = std::move(first);
}

void ask_for_all(Overview& overview, Cluster& cluster, Clock& clock, std::uint32_t uid, Time now)
{
    const auto begin = clock.steady();
    const auto inventory = cluster.inventory();
    const auto all = inventory ? cluster.all_jobs() : Result<AllJobs>(inventory.error());
    if (!all) {
        overview.silent = all.error().text;
        return;
    }
    const auto asked_at = overview.asked_at;
    overview = make_overview(overview.cluster, *inventory, *all, uid, now);
    overview.asked_at = asked_at;
    overview.took = std::chrono::duration_cast<std::chrono::milliseconds>(clock.steady() - begin);
}

} // namespace

Overview make_overview(std::string cluster, const Inventory& inventory, const AllJobs& all,
                       std::uint32_t uid, Time now)
{
    Overview overview;
    overview.cluster = std::move(cluster);
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
            return one.at && one.model == pool.model && queues == pool.queues;
        });
        overview.pools.push_back(use_of(std::move(pool), mine, inventory));
        overview.pools.back().next = first == next.end() ? std::nullopt : first->at;
    }
    if (all.complete) {
        overview.waiting = waiting_line(all.jobs);
    }
    for (const Job& job : mine) {
        overview.jobs.push_back(own(job));
        if (job.state == JobState::pending) {
            overview.jobs.back().ahead = jobs_ahead(job, all);
        }
    }
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
                    [](const OwnJob& job) { return job.state == JobState::pending; });
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
    Overview none;
    none.cluster = cluster;
    const auto text = store.read(layout::overview(cluster));
    if (!text) {
        return none;
    }
    try {
        const json value = json::parse(*text);
        return value.at("v") == k_version ? overview_in(value) : none;
    } catch (const json::exception&) {
        return none;
    }
}

std::string asks_as(const Store& store, const std::string& cluster)
{
    return fmt::format("overview-{:016x}-{}", std::hash<std::string>{}(store.root()), cluster);
}

void refresh_overview(Store& store, Cluster& cluster, Host& host, Clock& clock, std::uint32_t uid,
                      const Wish& wish)
{
    const auto name = cluster.name();
    if (!name) {
        return;
    }
    const Time now = clock.now();
    Overview overview = kept_overview(store, *name);
    const bool recent =
        overview.asked_at && *overview.asked_at <= now && now - *overview.asked_at < k_anew_again;
    const Due what = wish.anew && !recent ? Due::all : due(overview, uid, now);
    if (what == Due::nothing) {
        return;
    }
    const bool missed =
        overview.asked_at ? now - *overview.asked_at > k_missed : now - wish.since > k_never_asked;
    if (!host.hold(asks_as(store, *name)) && !missed && !wish.anew) {
        return; // another process of this user asks
    }
    overview.asked_at = now;
    if (what == Due::own_jobs) {
        ask_for_jobs(overview, cluster, now);
    } else if (what == Due::nodes) {
        ask_for_nodes(overview, cluster, now);
    } else if (what == Due::first) {
        ask_first(overview, cluster, now);
    } else {
        ask_for_all(overview, cluster, clock, uid, now);
    }
    // Whoever can't write it asks for itself alone, next time again.
    (void)store.write(layout::overview(*name), document(overview).dump());
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
                                  [&](const OwnJob& one) { return one.id == status.job->job; });
    if (job == overview.jobs.end()) {
        if (overview.jobs_at && *overview.jobs_at <= status.job->submitted_at) {
            status.state = RunState::waiting; // Slurm has taken it, and was not asked since
            status.reason = "None";
        }
        return;
    }
    if (job->state == JobState::pending) {
        status.state = RunState::waiting;
        status.reason = job->reason;
        status.expected_start = job->started_at;
    } else if (job->state == JobState::running || job->state == JobState::suspended) {
        status.state = RunState::running;
        status.suspended = job->state == JobState::suspended;
        status.started_at = status.started_at ? status.started_at : job->started_at;
        status.ends_at = job->ends_at;
        status.host = status.host.empty() ? job->host : status.host;
    }
}

} // namespace gpuq
