// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/measure.h"

#include "core/percentile.h"
#include "sim/idle.h"

#include <algorithm>
#include <functional>
#include <map>

namespace gpuq::sim {
namespace {

/// The waits of the jobs whose indexes are given.
Waits waits_of(const std::vector<Job>& jobs, const Course& course, const Targets& targets,
               const std::vector<std::size_t>& chosen)
{
    Waits waits;
    std::vector<Seconds> first;
    Seconds sum{0};
    Seconds sum_in_all{0};
    std::size_t in_time = 0;
    for (const std::size_t i : chosen) {
        const Outcome& outcome = course.outcomes[i];
        ++waits.runs;
        if (outcome.links == 0) {
            ++waits.never;
            continue;
        }
        const Seconds wait = outcome.start - jobs[i].submit;
        const bool is_short = jobs[i].duration <= targets.short_run;
        first.push_back(wait);
        sum += wait;
        sum_in_all += outcome.waited;
        in_time += wait <= (is_short ? targets.short_target : targets.long_target) ? 1 : 0;
    }
    if (first.empty()) {
        return waits;
    }
    std::sort(first.begin(), first.end());
    const auto count = static_cast<double>(first.size());
    waits.p50 = percentile(first, 50);
    waits.p95 = percentile(first, 95);
    waits.max = first.back();
    waits.mean = static_cast<double>(sum.count()) / count;
    waits.mean_in_all = static_cast<double>(sum_in_all.count()) / count;
    waits.within_target = static_cast<double>(in_time) / count;
    return waits;
}

/// The waits of jobs, grouped by a key.
template <typename Key>
std::map<Key, Waits> by(const std::vector<Job>& jobs, const Course& course, const Targets& targets,
                        const std::function<Key(std::size_t)>& key_of)
{
    std::map<Key, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        groups[key_of(i)].push_back(i);
    }
    std::map<Key, Waits> result;
    for (const auto& [key, members] : groups) {
        result[key] = waits_of(jobs, course, targets, members);
    }
    return result;
}

} // namespace

Measures measure(const Machine& machine, const std::vector<Job>& jobs, const Course& course,
                 const Targets& targets)
{
    Measures result;
    std::vector<std::size_t> all;
    std::vector<std::size_t> brief;
    std::vector<std::size_t> lengthy;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        all.push_back(job);
        (jobs[job].duration <= targets.short_run ? brief : lengthy).push_back(job);
    }
    result.all = waits_of(jobs, course, targets, all);
    result.short_runs = waits_of(jobs, course, targets, brief);
    result.long_runs = waits_of(jobs, course, targets, lengthy);
    for (const auto& [name, waits] :
         by<std::string>(jobs, course, targets, [&](std::size_t job) { return jobs[job].user; })) {
        result.users.push_back({name, waits});
    }
    for (const auto& [partition, waits] : by<int>(jobs, course, targets, [&](std::size_t job) {
             return course.outcomes[job].partition;
         })) {
        if (partition >= 0) {
            const auto index = static_cast<std::size_t>(partition);
            result.partitions.push_back({machine.partitions[index].name, waits});
        }
    }
    result.preempted = static_cast<std::size_t>(
        std::count_if(course.outcomes.begin(), course.outcomes.end(),
                      [](const Outcome& outcome) { return outcome.preempted > 0; }));
    result.failed = static_cast<std::size_t>(
        std::count_if(course.outcomes.begin(), course.outcomes.end(),
                      [](const Outcome& outcome) { return outcome.failed > 0; }));
    result.stopped = static_cast<std::size_t>(
        std::count_if(course.outcomes.begin(), course.outcomes.end(),
                      [](const Outcome& outcome) { return outcome.ending == Ending::timed_out; }));
    for (const Job& job : jobs) {
        result.span = std::max(result.span, job.submit);
    }
    const GpuTime time = gpu_time(machine, jobs, course, result.span);
    if (time.all > 0) {
        result.use = time.used / time.all;
        result.idle_while_waiting = time.idle_while_waiting / time.all;
        result.idle_while_allowed = time.idle_while_allowed / time.all;
    }
    return result;
}

double harm(const Waits& before, const Waits& after)
{
    return std::max(after.mean_in_all, 1.0) / std::max(before.mean_in_all, 1.0);
}

} // namespace gpuq::sim
