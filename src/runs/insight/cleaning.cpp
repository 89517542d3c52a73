// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/cleaning.h"

#include "core/layout.h"
#include "runs/evidence.h"
#include "runs/records/record.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace gpuq {
namespace {

bool may_go(const RunOnShelf& run, Time now)
{
    return run.ended_at && now - *run.ended_at >= k_just_ended;
}

/// The index entry may belong to another run by now: job ids are reused.
void forget_job(Store& store, const RunKey& key, const LinkJob& job)
{
    const std::string path = layout::job_index(job.cluster, job.job);
    const auto text = store.read(path);
    if (text && std::string_view(*text).substr(0, text->find('\n')) == key.text()) {
        (void)store.remove(path);
    }
}

} // namespace

std::vector<RunOnShelf> outdated(std::vector<RunOnShelf> runs, const Retention& retention, Time now)
{
    std::uint64_t total = 0;
    for (const RunOnShelf& run : runs) {
        total += run.bytes;
    }
    std::erase_if(runs, [&](const RunOnShelf& run) { return !may_go(run, now); });
    std::sort(runs.begin(), runs.end(), [](const RunOnShelf& a, const RunOnShelf& b) {
        return std::pair(*a.ended_at, a.key) < std::pair(*b.ended_at, b.key);
    });
    auto end = runs.begin();
    for (; end != runs.end(); ++end) {
        const bool is_old = retention.age && now - *end->ended_at > *retention.age;
        const bool is_too_much = retention.total_bytes && total > *retention.total_bytes;
        if (!is_old && !is_too_much) {
            break;
        }
        total -= end->bytes;
    }
    runs.erase(end, runs.end());
    return runs;
}

RunOnShelf on_shelf(Store& store, const RunStatus& status)
{
    const auto size = store.tree_size(layout::run_dir(status.key));
    RunOnShelf run{status.key, std::nullopt, size ? *size : 0};
    if (size && status.state == RunState::ended && status.ending) {
        run.ended_at = status.ending->at;
    }
    return run;
}

void add_sweeps(Store& store, const std::vector<RunStatus>& statuses,
                std::vector<RunOnShelf>& shelf)
{
    const auto end_of = [](const RunOnShelf& run) {
        return std::pair(run.ended_at.value_or(Time::max()), run.key);
    };
    std::map<RunKey, RunOnShelf*> last;
    for (std::size_t i = 0; i < statuses.size(); ++i) {
        if (statuses[i].run && statuses[i].run->request.sweep) {
            RunOnShelf*& known = last[statuses[i].run->request.sweep->sweep];
            known = known == nullptr || end_of(*known) < end_of(shelf[i]) ? &shelf[i] : known;
        }
    }
    for (const auto& [sweep, worker] : last) {
        const auto size = store.tree_size(layout::sweep_dir(sweep));
        worker->bytes += size ? *size : 0;
    }
}

Result<void> remove_run(Store& store, const RunKey& key)
{
    const int newest = newest_link(store, key).value;
    for (LinkNumber link{1}; link.value <= newest; ++link.value) {
        const auto text = store.read(layout::job_json(key, link));
        if (const auto job = text ? link_job_from_json(*text) : Result<LinkJob>(text.error())) {
            forget_job(store, key, *job);
        }
    }
    TRY(store.remove(layout::active(key)));
    return store.remove_tree(layout::run_dir(key));
}

} // namespace gpuq
