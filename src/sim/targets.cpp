// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/targets.h"

#include "core/percentile.h"
#include "sim/measure.h"

#include <algorithm>
#include <map>

namespace gpuq::sim {
namespace {

constexpr Seconds k_for_ever = Seconds::max();

/// By queue, ascending.
using WaitsOfQueues = std::map<const policy::Queue*, std::vector<Seconds>>;

WaitsOfQueues waits_of_queues(const policy::Rules& rules, const Scenario& scenario,
                              const Course& course)
{
    WaitsOfQueues waits;
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        const Job& job = scenario.jobs[i];
        const Outcome& outcome = course.outcomes[i];
        if (outcome.ending == Ending::refused) {
            continue;
        }
        const auto first = static_cast<std::size_t>(job.partitions.front());
        const auto* where = rules.of_partition(scenario.machine.partitions[first].name);
        if (where != nullptr) {
            waits[where->queue].push_back(outcome.links > 0 ? outcome.start - job.submit
                                                            : k_for_ever);
        }
    }
    for (auto& [queue, all] : waits) {
        std::sort(all.begin(), all.end());
    }
    return waits;
}

} // namespace

std::vector<BrokenTarget> broken_targets(const policy::Rules& rules, const Scenario& scenario,
                                         const Course& course)
{
    const WaitsOfQueues waits = waits_of_queues(rules, scenario, course);
    std::vector<BrokenTarget> broken;
    for (const policy::Queue& queue : rules.policy().queues) {
        const auto found = waits.find(&queue);
        const auto hold = [&](int percent, const policy::Maybe<policy::minutes>& target) {
            if (found == waits.end() || !target) {
                return;
            }
            const Seconds wait = percentile(found->second, static_cast<std::size_t>(percent));
            if (wait > target->value) {
                broken.push_back({queue.name, percent, target->value,
                                  wait == k_for_ever ? std::nullopt : std::optional(wait),
                                  target->line});
            }
        };
        hold(50, queue.wait.p50);
        hold(95, queue.wait.p95);
        hold(100, queue.wait.max);
    }
    return broken;
}

std::map<std::size_t, std::string> refusals(const Scenario& scenario, const Course& course)
{
    std::map<std::size_t, std::string> refused = scenario.refused;
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        if (course.outcomes[i].ending == Ending::refused) {
            refused.emplace(scenario.of_trace[i],
                            "`queued` allows its user, its account or all together no more jobs");
        }
    }
    return refused;
}

} // namespace gpuq::sim
