// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/check_queue.h"

#include "core/walltime.h"
#include "policy/queue_partitions.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::policy {
namespace {

/// For idle GPUs: a shorter period can't be distinguished from a pause between two steps of a
/// program.
constexpr seconds k_shortest_idle{30};
constexpr minutes k_hasty_idle{10};
constexpr seconds k_least_warning{10};
/// A page that was cut off connects again within seconds.
constexpr seconds k_shortest_notebook_idle{60};

using Names = std::vector<std::string>;

/// Soft limits have partitions of their own, which must not come and go with their jobs.
void check_calendar(const Queue& queue, FindingList& findings)
{
    for (const CalendarEntry& entry : queue.calendar) {
        if (entry.limits.has_soft() && !queue.limits.has_soft()) {
            const auto& user = entry.limits.user.soft_gpus;
            findings.error(
                user ? *user : *entry.limits.account.soft_gpus, "missing",
                fmt::format("queue {} has no soft_gpus outside of this time: give it one, "
                            "which may be larger",
                            queue.name));
        }
    }
}

void check_idle(const IdleRule& idle, FindingList& findings)
{
    const seconds after = idle.after.value;
    if (after < k_shortest_idle) {
        findings.error(
            idle.after.line, "below",
            fmt::format("idle GPUs can't be distinguished from busy ones in less than {} s",
                        k_shortest_idle.count()));
    } else if (after < k_hasty_idle) {
        findings.warn(
            idle.after.line, "hasty",
            fmt::format("after less than {} min GPUs are taken from users who read a result "
                        "or load their data",
                        k_hasty_idle.count()));
    }
    if (idle.warn.line > 0 && (idle.warn.value >= after || idle.warn.value < k_least_warning)) {
        findings.error(idle.warn.line, idle.warn.value >= after ? "above" : "below",
                       fmt::format("a warning comes at least {} s before the end, and less than "
                                   "'after' (line {})",
                                   k_least_warning.count(), idle.after.line));
    }
}

void check_queue_models(const Policy& policy, const Queue& queue, FindingList& findings)
{
    for (const std::string& model : queue.models ? queue.models->value : Names{}) {
        const auto queue_partitions = partitions_of(policy, queue);
        const bool there = std::any_of(queue_partitions.begin(), queue_partitions.end(),
                                       [&](const QueuePartition& queue_partition) {
                                           return queue_partition.pool->has_model(model);
                                       });
        if (!there) {
            findings.error(*queue.models, "unknown-name",
                           fmt::format("no pool of queue {} has a {}", queue.name, model));
        }
    }
}

void check_limits(const Queue& queue, FindingList& findings)
{
    const Limits& limits = queue.limits;
    if (limits.all.soft_gpus) {
        findings.error(*limits.all.soft_gpus, "no-effect",
                       "a soft limit of all together has no effect: no user is left to wait for");
    }
}

/// Limits on shares make a queue accept them, so that its pools must have some.
void check_shares(const Policy& policy, const Queue& queue, FindingList& findings)
{
    int most = 0;
    for (const QueuePartition& one : partitions_of(policy, queue)) {
        most = std::max(most, one.pool->shares ? one.pool->shares->per_gpu.value : 0);
    }
    const Limits& limits = queue.limits;
    for (const auto* limit :
         {&limits.job.shares, &limits.user.shares, &limits.account.shares, &limits.all.shares}) {
        if (*limit && most == 0) {
            findings.error(
                **limit, "no-effect",
                fmt::format("no pool of queue {} has shares (shares: {{per_gpu: 4}})", queue.name));
        }
    }
    if (limits.job.shares && most > 0 && limits.job.shares->value > most) {
        findings.warn(
            *limits.job.shares, "no-effect",
            fmt::format("{} shares never bind: a GPU of queue {} has {}, and a job gets those "
                        "of one GPU",
                        limits.job.shares->value, queue.name, most));
    }
}

/// The GPUs of all pools of a queue; nullopt if one of the pools does not specify its GPUs or
/// nodes.
std::optional<int> gpus_of(const Policy& policy, const Queue& queue)
{
    int gpus = 0;
    for (const Pool& pool : policy.pools) {
        if (is_used(queue, pool)) {
            if (pool.gpus.value.empty() || pool.nodes.value == Names{"ALL"}) {
                return std::nullopt;
            }
            gpus += static_cast<int>(pool.nodes.value.size()) * pool.gpus_per_node();
        }
    }
    return gpus;
}

void check_sizes(const Policy& policy, const Queue& queue, FindingList& findings)
{
    const auto there = gpus_of(policy, queue);
    const Limits& limits = queue.limits;
    for (const auto* limit :
         {&limits.job.gpus, &limits.user.gpus, &limits.account.gpus, &limits.all.gpus,
          &limits.user.soft_gpus, &limits.account.soft_gpus}) {
        if (there && *limit && (*limit)->value > *there) {
            findings.warn(**limit, "no-effect",
                          fmt::format("{} GPUs never bind: the pools of queue {} have {}",
                                      (*limit)->value, queue.name, *there));
        }
    }
}

void check_wait(const WaitTarget& wait, FindingList& findings)
{
    const auto order = [&](const Maybe<minutes>& less, const Maybe<minutes>& more) {
        if (less && more && less->value > more->value) {
            findings.error(*less, "above",
                           fmt::format("a wait of {} is longer than the one of line {}",
                                       to_text(less->value), more->line));
        }
    };
    order(wait.p50, wait.p95);
    order(wait.p95, wait.max);
    order(wait.p50, wait.max);
}

} // namespace

bool is_used(const Queue& queue, const Pool& pool)
{
    const auto in = [&](const Names& names) {
        return std::find(names.begin(), names.end(), pool.name) != names.end();
    };
    return in(queue.pools.value) || in(queue.overflow.value);
}

void check_queue(const Policy& policy, const Queue& queue, FindingList& findings)
{
    Names known;
    for (const Pool& pool : policy.pools) {
        known.push_back(pool.name);
    }
    for (const auto* pools : {&queue.pools, &queue.overflow}) {
        for (const std::string& name : pools->value) {
            findings.expect_known(name, known, "pool", *pools);
        }
        if (pools->value.size() > k_most_pools) {
            findings.error(*pools, "too-many",
                           fmt::format("more than {} pools in one list", k_most_pools));
        }
    }
    for (const std::string& name : queue.overflow.value) {
        const auto& own = queue.pools.value;
        if (std::find(own.begin(), own.end(), name) != own.end()) {
            findings.error(queue.overflow, "twice",
                           fmt::format("pool {} is among the pools of queue {} already (line {})",
                                       name, queue.name, queue.pools.line));
        }
    }
    if (queue.default_time.value > queue.max_time.value) {
        findings.error(queue.default_time, "above",
                       fmt::format("default_time {} is beyond the time {} of line {}",
                                   to_text(queue.default_time.value), to_text(queue.max_time.value),
                                   queue.max_time.line));
    }
    if (queue.chain && queue.chain->link && queue.chain->link->value > queue.max_time.value) {
        findings.error(*queue.chain->link, "above",
                       fmt::format("a link of {} is beyond the queue's time {}",
                                   to_text(queue.chain->link->value),
                                   to_text(queue.max_time.value)));
    }
    if (queue.idle) {
        check_idle(*queue.idle, findings);
    }
    if (queue.notebook_idle && queue.notebook_idle->value < k_shortest_notebook_idle) {
        findings.error(*queue.notebook_idle, "below",
                       fmt::format("a notebook may be unused for at least {} s",
                                   k_shortest_notebook_idle.count()));
    }
    check_calendar(queue, findings);
    if (queue.extend && !policy.helper) {
        findings.error(queue.extend->line, "missing",
                       fmt::format("queue {} extends running jobs, which Slurm permits only its "
                                   "operators: name the account that does it (helper, "
                                   "gpuq-extend(1))",
                                   queue.name));
    }
    check_queue_models(policy, queue, findings);
    check_limits(queue, findings);
    check_shares(policy, queue, findings);
    check_sizes(policy, queue, findings);
    check_wait(queue.wait, findings);
}

} // namespace gpuq::policy
