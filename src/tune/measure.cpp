// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/measure.h"

#include "core/percentile.h"
#include "sim/measure.h"
#include "sim/simulate.h"

#include <algorithm>

namespace gpuq::tune {
namespace {

double gpu_hours_of(const sim::TraceJob& job)
{
    constexpr double k_hour = 3600;
    return static_cast<double>(job.duration.count()) * job.gpus / k_hour;
}

void add(Group& group, std::size_t run, const sim::TraceJob& job)
{
    group.has[run] = true;
    ++group.runs;
    group.gpu_hours += gpu_hours_of(job);
}

} // namespace

Result<std::vector<Group>> groups_of(const policy::Rules& rules, const sim::Trace& trace,
                                     const sim::UserModel& user_model)
{
    TRY_ASSIGN(const sim::Scenario scenario, sim::under_policy(rules, trace, user_model));
    std::vector<Group> groups;
    const auto group = [&](const std::string& name) -> Group& {
        const auto found = std::find_if(groups.begin(), groups.end(),
                                        [&](const Group& one) { return one.name == name; });
        return found != groups.end()
                   ? *found
                   : groups.emplace_back(
                         Group{name, std::vector<bool>(trace.jobs.size(), false), 0, 0});
    };
    for (const policy::Queue& queue : rules.policy().queues) {
        group(queue.name);
    }
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        const auto first = static_cast<std::size_t>(scenario.jobs[i].partitions.front());
        const auto* const where = rules.of_partition(scenario.machine.partitions[first].name);
        const std::size_t run = scenario.of_trace[i];
        if (where != nullptr) {
            add(group(where->queue->name), run, trace.jobs[run]);
        }
    }
    const bool has_short = rules.policy().queue("short") != nullptr;
    const bool has_long = rules.policy().queue("long") != nullptr;
    for (std::size_t run = 0; run < trace.jobs.size(); ++run) {
        const bool is_short = trace.jobs[run].duration <= sim::Targets{}.short_run;
        if (is_short ? !has_short : !has_long) {
            add(group(is_short ? "short" : "long"), run, trace.jobs[run]);
        }
    }
    std::erase_if(groups, [](const Group& one) { return one.runs == 0; });
    return groups;
}

Result<Observed> observe(const sim::Scenario& scenario, const Period& period)
{
    TRY_ASSIGN(const sim::Course course, sim::simulate(scenario.machine, scenario.jobs));
    Observed observed;
    const auto add_wait = [&](std::size_t in_period, Seconds first, Seconds all) {
        const Seconds submit = period.trace.jobs[in_period].submit;
        if (period.contains(submit)) {
            observed.waits.push_back({period.indexes[in_period], submit, first, all});
        }
        return period.contains(submit);
    };
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        const sim::Outcome& outcome = course.outcomes[i];
        const bool started = outcome.links > 0;
        const bool counts = add_wait(scenario.of_trace[i],
                                     started ? outcome.start - scenario.jobs[i].submit : k_never,
                                     started ? outcome.waited : k_never);
        const bool served = started && outcome.ending == sim::Ending::completed;
        observed.unserved += counts && !served ? 1 : 0;
    }
    for (const auto& [in_period, why] : scenario.refused) {
        observed.unserved += add_wait(in_period, k_never, k_never) ? 1 : 0;
    }
    return observed;
}

Result<Observed> observe(const policy::Rules& rules, const Period& period,
                         const sim::UserModel& user_model)
{
    TRY_ASSIGN(const sim::Scenario scenario, sim::under_policy(rules, period.trace, user_model));
    return observe(scenario, period);
}

Seconds wait_of(const Goal& goal, const Group& group, const Observed& observed, Seconds begin,
                Seconds end)
{
    std::vector<Seconds> waits;
    for (const Observed::Wait& wait : observed.waits) {
        if (group.has[wait.run] && wait.submit >= begin && wait.submit < end) {
            waits.push_back(goal.percent > 0 ? wait.first : wait.all);
        }
    }
    if (waits.empty()) {
        return Seconds{0};
    }
    if (goal.percent > 0) {
        std::sort(waits.begin(), waits.end());
        return percentile(waits, static_cast<std::size_t>(goal.percent));
    }
    Seconds sum{0};
    std::int64_t count = 0;
    for (const Seconds wait : waits) { // runs that never start are counted by `unserved`
        sum += wait == k_never ? Seconds{0} : wait;
        count += wait == k_never ? 0 : 1;
    }
    return count == 0 ? k_never : sum / count;
}

} // namespace gpuq::tune
