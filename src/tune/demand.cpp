// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/demand.h"

#include "tune/problem.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace gpuq::tune {
namespace {

constexpr double k_hour = 3600;
constexpr int k_size_classes = 48; ///< each twice as large as the one before

int gpus_of(const policy::Pool& pool)
{
    return pool.gpus_per_node() * static_cast<int>(pool.nodes.value.size());
}

int gpus_in(const policy::Policy& policy, const std::vector<std::string>* names)
{
    int gpus = 0;
    for (const policy::Pool& pool : policy.pools) {
        const bool counts =
            names == nullptr || std::find(names->begin(), names->end(), pool.name) != names->end();
        gpus += counts ? gpus_of(pool) : 0;
    }
    return gpus;
}

double part(double gpu_hours, int gpus, double hours)
{
    return gpus > 0 && hours > 0 ? gpu_hours / (gpus * hours) : 0;
}

/// Of the runs for which `has` is true, or of all if it is null.
Demand demand_of(const sim::Trace& trace, const std::vector<bool>* has, int gpus)
{
    Demand demand;
    std::map<int, double> weeks;
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        if (has == nullptr || (*has)[i]) {
            const sim::TraceJob& job = trace.jobs[i];
            const double hours = static_cast<double>(job.duration.count()) * job.gpus / k_hour;
            ++demand.runs;
            demand.gpu_hours += hours;
            weeks[static_cast<int>(job.submit / k_week) + 1] += hours;
        }
    }
    const double span = static_cast<double>(trace.jobs.back().submit.count()) / k_hour;
    demand.of_all = part(demand.gpu_hours, gpus, span);
    for (const auto& [week, hours] : weeks) {
        const double here = part(hours, gpus, static_cast<double>(k_week.count()) / k_hour);
        if (here > demand.most_in_a_week) {
            demand.most_in_a_week = here;
            demand.busiest_week = week;
        }
    }
    return demand;
}

/// The whole trace, with only the runs of a group.
Period alone(const sim::Trace& trace, const Group& group)
{
    Period period{1, static_cast<int>(trace.jobs.back().submit / k_week) + 1, {}, {}};
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        if (group.has[i]) {
            period.trace.jobs.push_back(trace.jobs[i]);
            period.indexes.push_back(i);
        }
    }
    return period;
}

/// Gives every job the priority of its size class.
void put_smallest_first(sim::Scenario& scenario)
{
    for (int i = 0; i < k_size_classes; ++i) {
        sim::Qos size;
        size.name = "size" + std::to_string(i);
        size.priority = k_size_classes - i;
        scenario.machine.qos.push_back(size);
    }
    constexpr double k_above_all_else = 1e6;
    scenario.machine.settings.weights.qos = k_above_all_else;
    for (sim::Job& job : scenario.jobs) {
        const double size = static_cast<double>(job.duration.count()) * job.gpus;
        job.qos = std::min(static_cast<int>(std::log2(size + 1)), k_size_classes - 1);
    }
}

} // namespace

std::vector<Demand> demands_of(const policy::Policy& policy, const sim::Trace& trace,
                               const std::vector<Group>& groups)
{
    const int gpus = gpus_in(policy, nullptr);
    const double span = static_cast<double>(trace.jobs.back().submit.count()) / k_hour;
    std::vector<Demand> demands;
    for (const Group& group : groups) {
        Demand demand = demand_of(trace, &group.has, gpus);
        demand.group = group.name;
        if (const policy::Queue* queue = policy.queue(group.name)) {
            demand.of_pools = part(demand.gpu_hours, gpus_in(policy, &queue->pools.value), span);
        }
        demands.push_back(demand);
    }
    demands.push_back(demand_of(trace, nullptr, gpus));
    return demands;
}

Result<std::optional<Impossible>> impossible(const policy::Rules& rules, const Jobs& jobs,
                                             const Goal& goal, const Group& group)
{
    const Period period = alone(jobs.trace, group);
    TRY_ASSIGN(sim::Scenario scenario, sim::as_plain_queue(rules, period.trace, jobs.user_model));
    Seconds best = k_never;
    for (const bool smallest_first : {false, true}) {
        if (smallest_first) {
            put_smallest_first(scenario);
        }
        TRY_ASSIGN(const Observed observed, observe(scenario, period));
        best = std::min(best, wait_of(goal, group, observed, period.begin(), period.end()));
        if (best <= *goal.limit) {
            return std::optional<Impossible>{};
        }
    }
    const int gpus = gpus_in(rules.policy(), nullptr);
    Demand demand = demand_of(jobs.trace, &group.has, gpus);
    demand.group = group.name;
    return std::optional(Impossible{goal, best, std::move(demand)});
}

} // namespace gpuq::tune
