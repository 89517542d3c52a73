// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/walltime.h"
#include "policy/check.h"
#include "policy/course_times.h"
#include "policy/queue_partitions.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::policy {
namespace {

using Weight = Finding::Weight;

constexpr SlurmRelease k_run_minutes{24, 5}; ///< MaxTRESRunMinsPU is enforced from this release on
constexpr SlurmRelease k_gpu_reservations{23, 11}; ///< reservations of GPUs instead of whole nodes

int gpus_of(const Pool& pool)
{
    return static_cast<int>(pool.nodes.value.size()) * pool.gpus_per_node();
}

void report_bound(const Queue& queue, const WaitBound& bound, std::vector<Finding>& findings)
{
    const minutes most = queue.wait.max->value;
    std::string text = fmt::format(
        "queue {}: a wait of {} at worst holds for at most {} users at once ({} GPUs, {} for each)",
        queue.name, to_text(most), bound.user_count, bound.gpus, bound.per_user);
    if (bound.with_lent > bound.gpus) {
        text += fmt::format("; with lent nodes ({} GPUs) for {}", bound.with_lent,
                            bound.users_with_lent);
    }
    findings.push_back({Weight::note, queue.wait.max->line, queue.wait.max->column, "wait-bound",
                        std::move(text)});
}

/// No wait can be guaranteed if one job may hold the cores that belong to other jobs' GPUs.
void report_unbounded(const Queue& queue, std::vector<Finding>& findings)
{
    const WaitTarget& wait = queue.wait;
    if ((wait.p50 || wait.p95 || wait.max) && !queue.cpus_per_gpu && !queue.memory_per_gpu_mib) {
        findings.push_back({Weight::note, queue.line, 0, "cores-unbounded",
                            fmt::format("queue {}: a job with one GPU may hold all cores and "
                                        "memory of its node: per_gpu limits the share of each GPU",
                                        queue.name)});
    }
}

void report_ignored(const Queue& queue, SlurmRelease slurm, std::vector<Finding>& findings)
{
    for (const Share* share : {&queue.limits.user, &queue.limits.account}) {
        if (share->gpu_hours_ahead && slurm < k_run_minutes) {
            findings.push_back(
                {Weight::warning, share->gpu_hours_ahead->line, share->gpu_hours_ahead->column,
                 "ignored-by-slurm",
                 fmt::format("Slurm {:02}.{:02} stores gpu_hours_ahead and does not enforce it "
                             "(from {:02}.{:02} on it does): use gpus or jobs",
                             slurm.year, slurm.month, k_run_minutes.year, k_run_minutes.month)});
        }
    }
}

/// `20 s`, `5 min`
std::string text_of(seconds time)
{
    return time % minutes(1) == seconds{0} ? to_text(std::chrono::duration_cast<minutes>(time))
                                           : fmt::format("{} s", time.count());
}

/// PreemptExemptTime applies to the whole cluster (slurm.conf(5)).
seconds longest_min_run(const Policy& policy)
{
    seconds longest{0};
    for (const Pool& pool : policy.pools) {
        longest = std::max(longest, pool.lend ? pool.lend->min_run.value : seconds{0});
    }
    return longest;
}

void report_rounded(const Policy& policy, std::vector<Finding>& findings)
{
    const seconds longest = longest_min_run(policy);
    for (const Pool& pool : policy.pools) {
        if (pool.lend && pool.lend->min_run.value < longest) {
            findings.push_back({Weight::warning, pool.lend->line, 0, "rounded",
                                fmt::format("Slurm has one min_run for all pools: guests of pool "
                                            "{} are also protected for {}",
                                            pool.name, text_of(longest))});
        }
    }
}

/// The longest wait of the owner of a lent pool. As measured: Slurm checks every 30 s whether a
/// grace period is over, and then waits for KillWait (30 s unless slurm.conf sets it).
void report_return(const Pool& pool, seconds min_run, std::vector<Finding>& findings)
{
    if (!pool.lend) {
        return;
    }
    const seconds grace = pool.lend->grace.value;
    findings.push_back(
        {Weight::note, pool.lend->grace.line > 0 ? pool.lend->grace.line : pool.lend->line, 0,
         "return-bound",
         fmt::format("pool {} is back with its {} at most {} after they ask (grace {}, up to "
                     "30 s until Slurm checks, KillWait 30 s){}",
                     pool.name, pool.lend->only_sweeps ? "other queues" : "owner",
                     to_text(std::chrono::ceil<minutes>(grace + seconds{63})), text_of(grace),
                     min_run.count() > 0 ? fmt::format(", not counting the {} a guest is protected",
                                                       text_of(min_run))
                                         : "")});
}

void report_over(const Course& course, const std::string& now, std::vector<Finding>& findings)
{
    const LocalMinutes end = local_time_of(course.start.value) + course.duration.value;
    if (course.repeat.value == Course::Repeat::once && end <= local_time_of(now)) {
        findings.push_back({Weight::warning, course.start.line, course.start.column, "over",
                            fmt::format("course {} was over at {}: no one gets its nodes",
                                        course.name, as_written(end))});
    }
}

/// Slurm does not know about hours.
void report_calendar(const Policy& policy, std::vector<Finding>& findings)
{
    int line = 0;
    const auto take = [&](bool has_hours, int of_part) {
        line = has_hours && (line == 0 || of_part < line) ? of_part : line;
    };
    for (const Pool& pool : policy.pools) {
        take(!pool.when.empty() || (pool.lend && !pool.lend->when.empty()), pool.line);
    }
    for (const Queue& queue : policy.queues) {
        take(!queue.calendar.empty(), queue.calendar.empty() ? 0 : queue.calendar.front().line);
    }
    if (line > 0) {
        findings.push_back({Weight::note, line, 0, "calendar",
                            "hours need `gpuq policy advance` every minute on the controller's "
                            "host (gpuq-policy-advance.timer)"});
    }
}

} // namespace

std::optional<WaitBound> wait_bound(const Policy& policy, const Queue& queue)
{
    const Share& user = queue.limits.user;
    if (!queue.wait.max || (!user.gpus && !user.soft_gpus)) {
        return std::nullopt;
    }
    WaitBound bound;
    bound.per_user = user.soft_gpus ? user.soft_gpus->value : user.gpus->value;
    bound.per_user += user.shares ? user.shares->value : 0; // each may keep a GPU from others
    for (const QueuePartition& queue_partition : partitions_of(policy, queue)) {
        if (queue_partition.kind == QueuePartition::Kind::own) {
            if (queue_partition.pool->gpus.value.empty()) {
                return std::nullopt;
            }
            bound.gpus += queue_partition.guest ? 0 : gpus_of(*queue_partition.pool);
            bound.with_lent += gpus_of(*queue_partition.pool);
        }
    }
    const auto turns = queue.wait.max->value / queue.max_time.value;
    const auto users_for = [&](int gpus) {
        return static_cast<int>(turns * gpus / bound.per_user) + 1;
    };
    bound.user_count = bound.gpus > 0 ? users_for(bound.gpus) : 0;
    bound.users_with_lent = users_for(bound.with_lent);
    return bound;
}

std::vector<Finding> consequences(const Policy& policy, SlurmRelease slurm, const std::string& now)
{
    std::vector<Finding> findings;
    for (const Queue& queue : policy.queues) {
        report_ignored(queue, slurm, findings);
        report_unbounded(queue, findings);
        if (const auto bound = wait_bound(policy, queue)) {
            report_bound(queue, *bound, findings);
        }
    }
    report_calendar(policy, findings);
    report_rounded(policy, findings);
    for (const Pool& pool : policy.pools) {
        report_return(pool, longest_min_run(policy), findings);
    }
    for (const Course& course : policy.courses) {
        report_over(course, now, findings);
        if (slurm < k_gpu_reservations) {
            findings.push_back(
                {Weight::note, course.nodes.line, 0, "rounded",
                 fmt::format("course {} gets whole nodes: GPU reservations need "
                             "Slurm {:02}.{:02}",
                             course.name, k_gpu_reservations.year, k_gpu_reservations.month)});
        }
    }
    std::stable_sort(
        findings.begin(), findings.end(),
        [](const Finding& one, const Finding& other) { return one.line < other.line; });
    return findings;
}

} // namespace gpuq::policy
