// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/own_gpus.h"

#include "core/comment.h"
#include "ports/job.h"
#include "runs/insight/holdings.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

/// The clocks of two hosts differ, and Slurm's times are whole seconds.
constexpr auto k_slack = 10s;

NodeUse* node_of(PoolUse& use, const std::string& name)
{
    const auto node = std::find_if(use.nodes.begin(), use.nodes.end(),
                                   [&](const NodeUse& one) { return one.name == name; });
    return node == use.nodes.end() ? nullptr : &*node;
}

/// The pool of a run that has just started; null if it is ambiguous.
PoolUse* pool_of(const RunStatus& run, std::vector<PoolUse>& pools)
{
    const auto& model = run.run->request.gpus.model;
    std::vector<PoolUse*> fitting;
    for (PoolUse& use : pools) {
        const bool exists = run.host.empty()
                                ? std::find(use.pool.queues.begin(), use.pool.queues.end(),
                                            run.queue) != use.pool.queues.end()
                                : node_of(use, run.host) != nullptr;
        if (exists && (!model || *model == use.pool.model)) {
            fitting.push_back(&use);
        }
    }
    return fitting.size() == 1 ? fitting.front() : nullptr;
}

void set_mine(NodeUse& node, int mine)
{
    if (node.in_use) {
        node.in_use = std::clamp(*node.in_use + mine - node.mine, 0, node.total);
        node.blocked = std::min(node.blocked, node.total - *node.in_use);
    }
    node.mine = mine;
}

/// The numbers of a pool, from its nodes. `elsewhere`: its GPUs in use on unknown nodes.
void sum_up(PoolUse& use, int elsewhere)
{
    GpuPool& pool = use.pool;
    pool.in_use = pool.free = pool.most_on_one_node = pool.down = pool.blocked = 0;
    for (const NodeUse& node : use.nodes) {
        *pool.in_use += node.in_use.value_or(0);
        *pool.free += free_on(node).value_or(0);
        pool.down += down_on(node).value_or(0);
        pool.blocked += node.blocked;
        pool.most_on_one_node = std::max(*pool.most_on_one_node, free_on(node).value_or(0));
    }
    const int taken = std::min(elsewhere, *pool.free);
    *pool.in_use += taken;
    *pool.free -= taken;
    pool.most_on_one_node = std::min(*pool.most_on_one_node, *pool.free);
}

/// The pools with no GPUs of the user, to be filled by add_held().
std::vector<PoolUse> without_mine(std::vector<PoolUse> pools)
{
    for (PoolUse& use : pools) {
        use.mine = 0;
        for (NodeUse& node : use.nodes) {
            node.mine = 0;
        }
    }
    return pools;
}

/// Changes the user's share of a pool to that of `now`.
void set_mine(PoolUse& use, const PoolUse& now)
{
    if (use.mine == now.mine && use.nodes == now.nodes) {
        return;
    }
    int elsewhere = now.mine.value_or(0);
    for (std::size_t i = 0; i < use.nodes.size(); ++i) {
        set_mine(use.nodes[i], now.nodes[i].mine);
        elsewhere -= now.nodes[i].mine;
    }
    use.mine = now.mine;
    if (use.pool.in_use && use.pool.free) {
        sum_up(use, elsewhere);
    }
}

/// Adds the GPUs of a run that has started.
void add_started(PoolUse& share, Overview& overview, const RunStatus& run)
{
    const Request& request = run.run->request;
    if (request.gpus.share) {
        return; // other jobs may hold shares of the same GPU
    }
    share.mine = share.mine.value_or(0) + request.gpus.count * request.nodes;
    if (NodeUse* const node = node_of(share, run.host); node != nullptr) {
        node->mine += request.gpus.count;
        add_holding(overview.holdings,
                    {run.host, share.pool.model, request.gpus.count, run.job->job, "",
                     overview.uid.value_or(0), run.started_at, run.ends_at});
    }
}

/// Counts each GPU in use on which the user holds shares as the user's. Other users may hold shares
/// of it too, so that it is not free when the user's jobs end. Slurm may not report which GPUs they
/// are.
void add_shared(PoolUse& use, const std::vector<OwnJob>& jobs)
{
    std::set<std::pair<NodeUse*, int>> gpus;
    for (const OwnJob& own : jobs) {
        for (const HeldShares& shares : own.job.held.shares) {
            NodeUse* const node = has_gpus(own.job.state) && shares.model == use.pool.model
                                      ? node_of(use, shares.node)
                                      : nullptr;
            for (const int gpu : shares.gpus) {
                if (node != nullptr && node->mine < node->in_use.value_or(0) &&
                    gpus.emplace(node, gpu).second) {
                    ++node->mine;
                    use.mine = use.mine.value_or(0) + 1;
                }
            }
        }
    }
}

/// The user's own jobs are known at once, those of all users only after minutes.
void release_by_own_limits(Overview& overview)
{
    for (const Holding& holding : overview.holdings) {
        if (holding.uid != overview.uid || !holding.until) {
            continue;
        }
        for (PoolUse& use : overview.pools) {
            const bool is_first =
                use.pool.model == holding.model && (!use.next || *holding.until < *use.next);
            const NodeUse* const node = is_first ? node_of(use, holding.node) : nullptr;
            if (node != nullptr && node->up) {
                use.next = holding.until;
            }
        }
    }
}

/// A job that has started since no longer counts as waiting.
void leaves_the_line(Overview& overview, const OwnJob& own)
{
    const bool was_counted = own.job.state == JobState::pending && own.job.gpus > 0 && own.ahead;
    if (overview.waiting && was_counted && overview.waiting->jobs > 0) {
        --overview.waiting->jobs;
        overview.waiting->gpus = std::max(0, overview.waiting->gpus - own.job.gpus);
    }
}

const OwnJob* job_of(const Overview& overview, JobId id)
{
    const auto own = std::find_if(overview.jobs.begin(), overview.jobs.end(),
                                  [&](const OwnJob& one) { return one.job.id == id; });
    return own == overview.jobs.end() ? nullptr : &*own;
}

enum class Change { none, started, ended };

/// The change of a run according to the disk since Slurm's answer of `asked_at`, in which its job
/// is `own`.
Change change_of(const RunStatus& run, const OwnJob* own, const std::optional<Time>& asked_at)
{
    if (!run.job || !run.run) {
        return Change::none;
    }
    const bool has_some = own != nullptr && has_gpus(own->job.state);
    if (run.state == RunState::ended && run.ending && has_some && asked_at <= run.ending->at) {
        return Change::ended;
    }
    const bool started = run.state == RunState::running && run.started_at && !has_some &&
                         asked_at <= *run.started_at + k_slack;
    return started ? Change::started : Change::none;
}

/// Running jobs of a run other than the one that has just started: earlier links, which have ended.
std::vector<JobId> earlier_links(const Overview& overview, const RunStatus& run)
{
    std::vector<JobId> jobs;
    for (const OwnJob& own : overview.jobs) {
        const auto key = key_in_comment(own.job.comment);
        if (key && *key == run.key && own.job.id != run.job->job && has_gpus(own.job.state)) {
            jobs.push_back(own.job.id);
        }
    }
    return jobs;
}

/// A run may have started on the GPUs of a job that has ended since Slurm's answer.
void cap_mine(PoolUse& share)
{
    for (NodeUse& node : share.nodes) {
        const int excess = std::max(node.mine - node.total, 0);
        node.mine -= excess;
        *share.mine -= excess;
    }
}

} // namespace

int add_held(PoolUse& use, const std::vector<HeldGpus>& held)
{
    int count = 0;
    for (const HeldGpus& gpus : held) {
        NodeUse* const node = gpus.model == use.pool.model ? node_of(use, gpus.node) : nullptr;
        if (node != nullptr) {
            node->mine += gpus.count;
            count += gpus.count;
        }
    }
    return count;
}

void set_share(PoolUse& use, const std::vector<Job>& mine)
{
    use.mine = 0;
    for (NodeUse& node : use.nodes) {
        node.mine = 0;
    }
    for (const Job& job : mine) {
        *use.mine += has_gpus(job.state) ? add_held(use, job.held.whole) : 0;
    }
    if (use.pool.in_use && *use.mine > *use.pool.in_use) {
        use.pool.in_use = use.pool.free = use.pool.most_on_one_node = std::nullopt;
        for (NodeUse& node : use.nodes) {
            node.in_use = std::nullopt;
            node.blocked = 0;
        }
    }
}

Overview with_own_runs(Overview overview, const std::vector<RunStatus>& runs)
{
    if (!overview.at) {
        return overview;
    }
    std::vector<PoolUse> shares = without_mine(overview.pools);
    std::set<JobId> changed;
    const auto release = [&](JobId job) {
        changed.insert(job);
        std::erase_if(overview.holdings, [&](const Holding& one) { return one.job == job; });
    };
    for (const RunStatus& run : runs) {
        const OwnJob* const own = run.job ? job_of(overview, run.job->job) : nullptr;
        const Change change = change_of(run, own, overview.jobs_at);
        if (change == Change::none) {
            continue;
        }
        changed.insert(run.job->job);
        PoolUse* const share = change == Change::started ? pool_of(run, shares) : nullptr;
        if (share != nullptr) {
            add_started(*share, overview, run);
        }
        if (change == Change::started && own != nullptr) {
            leaves_the_line(overview, *own);
        }
        const std::vector<JobId> ended =
            change == Change::ended ? std::vector{run.job->job} : earlier_links(overview, run);
        std::for_each(ended.begin(), ended.end(), release);
    }
    for (const OwnJob& own : overview.jobs) {
        for (PoolUse& share : shares) {
            if (has_gpus(own.job.state) && !changed.contains(own.job.id)) {
                *share.mine += add_held(share, own.job.held.whole);
            }
        }
    }
    std::for_each(shares.begin(), shares.end(), cap_mine);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        set_mine(overview.pools[i], shares[i]);
        add_shared(overview.pools[i], overview.jobs);
    }
    release_by_own_limits(overview);
    return overview;
}

} // namespace gpuq
