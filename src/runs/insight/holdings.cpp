// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/holdings.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace gpuq {
namespace {

/// Slurm kills a job within this time after its limit, unless the site has set OverTimeLimit.
constexpr std::chrono::minutes k_overrun{2};

std::optional<Time> in_seconds(const std::optional<Time>& time)
{
    return time ? std::optional<Time>(std::chrono::floor<std::chrono::seconds>(*time))
                : std::nullopt;
}

bool goes_first(const Holding& one, const Holding& other)
{
    return std::tie(one.node, one.job, one.model) < std::tie(other.node, other.job, other.model);
}

std::set<JobId> ids_of(const std::vector<OwnJob>& jobs)
{
    std::set<JobId> ids;
    for (const OwnJob& own : jobs) {
        ids.insert(own.job.id);
    }
    return ids;
}

/// The GPUs of one model on one node.
using Place = std::pair<std::string_view, std::string_view>;

/// By how many GPUs the holdings exceed those in use; negative: others are in use as well.
std::map<Place, int> excesses(const Overview& overview)
{
    std::map<Place, int> excess;
    for (const PoolUse& use : overview.pools) {
        for (const NodeUse& node : use.nodes) {
            if (node.in_use) {
                excess[{node.name, use.pool.model}] -= *node.in_use;
            }
        }
    }
    for (const Holding& holding : overview.holdings) {
        if (const auto place = excess.find({holding.node, holding.model}); place != excess.end()) {
            place->second += holding.count;
        }
    }
    return excess;
}

/// The indices of the holdings, those with the nearest time limits first.
std::vector<std::size_t> by_limit(const std::vector<Holding>& holdings)
{
    std::vector<std::size_t> order(holdings.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
        const auto& first = holdings[one].until;
        const auto& second = holdings[other].until;
        return std::tuple(!first, first) < std::tuple(!second, second);
    });
    return order;
}

} // namespace

bool has_gpus(JobState state)
{
    return state == JobState::running || state == JobState::suspended ||
           state == JobState::completing;
}

std::vector<Holding> holdings_of(const std::vector<Job>& jobs)
{
    std::vector<Holding> holdings;
    for (const Job& job : jobs) {
        for (const HeldGpus& gpus : job.held.whole) {
            if (has_gpus(job.state) && gpus.count > 0) {
                holdings.push_back({gpus.node, gpus.model, gpus.count, job.id, job.called, job.uid,
                                    in_seconds(job.started_at), in_seconds(job.ends_at)});
            }
        }
    }
    std::sort(holdings.begin(), holdings.end(), goes_first);
    return holdings;
}

void add_holding(std::vector<Holding>& holdings, Holding holding)
{
    const auto place = std::upper_bound(holdings.begin(), holdings.end(), holding, goes_first);
    holdings.insert(place, std::move(holding));
}

void replace_own_holdings(Overview& overview, const std::vector<Job>& own)
{
    std::set<JobId> ids = ids_of(overview.jobs);
    for (const Job& job : own) {
        ids.insert(job.id);
    }
    std::erase_if(overview.holdings,
                  [&](const Holding& holding) { return ids.contains(holding.job); });
    std::vector<Holding> now = holdings_of(own);
    std::move(now.begin(), now.end(), std::back_inserter(overview.holdings));
    std::sort(overview.holdings.begin(), overview.holdings.end(), goes_first);
}

void drop_ended_holdings(Overview& overview, Time now)
{
    const std::set<JobId> own = ids_of(overview.jobs);
    std::erase_if(overview.holdings, [&](const Holding& holding) {
        return !own.contains(holding.job) && holding.until && *holding.until + k_overrun < now;
    });
    std::map<Place, int> excess = excesses(overview);
    std::set<std::size_t> ended;
    for (const std::size_t index : by_limit(overview.holdings)) {
        const Holding& holding = overview.holdings[index];
        const auto place = excess.find({holding.node, holding.model});
        if (place != excess.end() && place->second > 0 && !own.contains(holding.job)) {
            place->second -= holding.count;
            ended.insert(index);
        }
    }
    std::vector<Holding> left;
    for (std::size_t i = 0; i < overview.holdings.size(); ++i) {
        if (!ended.contains(i)) {
            left.push_back(std::move(overview.holdings[i]));
        }
    }
    overview.holdings = std::move(left);
}

} // namespace gpuq
