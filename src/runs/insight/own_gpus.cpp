// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/own_gpus.h"

#include "ports/job.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

/// The clocks of two hosts differ, and Slurm's times are whole seconds.
constexpr auto k_slack = 10s;

/// The pool of a run that has just started; null if it is ambiguous.
PoolUse* pool_of(const RunStatus& run, std::vector<PoolUse>& pools)
{
    const auto& model = run.run->request.gpus.model;
    std::vector<PoolUse*> fitting;
    for (PoolUse& use : pools) {
        const bool exists =
            run.host.empty()
                ? std::find(use.pool.queues.begin(), use.pool.queues.end(), run.queue) !=
                      use.pool.queues.end()
                : std::find(use.nodes.begin(), use.nodes.end(), run.host) != use.nodes.end();
        if (exists && (!model || *model == use.pool.model)) {
            fitting.push_back(&use);
        }
    }
    return fitting.size() == 1 ? fitting.front() : nullptr;
}

void set_mine(PoolUse& use, int mine)
{
    const int more = mine - use.mine.value_or(0);
    use.mine = mine;
    GpuPool& pool = use.pool;
    if (!pool.in_use || !pool.free || more == 0) {
        return;
    }
    const int before = *pool.free;
    pool.in_use = std::clamp(*pool.in_use + more, 0, pool.total);
    pool.free = std::clamp(before - more, 0, pool.total - pool.down - pool.blocked);
    const int gained = std::max(0, *pool.free - before);
    pool.most_on_one_node =
        std::min(*pool.free, std::max(pool.most_on_one_node.value_or(0), gained));
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

} // namespace

bool has_gpus(JobState state)
{
    return state == JobState::running || state == JobState::suspended ||
           state == JobState::completing;
}

int held_in(const PoolUse& use, const std::vector<HeldGpus>& held)
{
    int count = 0;
    for (const HeldGpus& gpus : held) {
        const bool is_here =
            gpus.model == use.pool.model &&
            std::find(use.nodes.begin(), use.nodes.end(), gpus.node) != use.nodes.end();
        count += is_here ? gpus.count : 0;
    }
    return count;
}

Overview with_own_runs(Overview overview, const std::vector<RunStatus>& runs)
{
    if (!overview.at) {
        return overview;
    }
    std::vector<int> mine(overview.pools.size(), 0);
    std::vector<JobId> changed;
    for (const RunStatus& run : runs) {
        const OwnJob* const own = run.job ? job_of(overview, run.job->job) : nullptr;
        const Change change = change_of(run, own, overview.jobs_at);
        if (change != Change::none) {
            changed.push_back(run.job->job);
        }
        const PoolUse* const use =
            change == Change::started ? pool_of(run, overview.pools) : nullptr;
        if (use != nullptr) {
            mine[static_cast<std::size_t>(use - overview.pools.data())] +=
                run.run->request.gpus.count * run.run->request.nodes;
        }
        if (change == Change::started && own != nullptr) {
            leaves_the_line(overview, *own);
        }
    }
    for (const OwnJob& own : overview.jobs) {
        const bool counts = has_gpus(own.job.state) &&
                            std::find(changed.begin(), changed.end(), own.job.id) == changed.end();
        for (std::size_t i = 0; counts && i < mine.size(); ++i) {
            mine[i] += held_in(overview.pools[i], own.job.held);
        }
    }
    for (std::size_t i = 0; i < mine.size(); ++i) {
        set_mine(overview.pools[i], mine[i]);
    }
    return overview;
}

} // namespace gpuq
