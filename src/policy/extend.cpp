// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/extend.h"

#include "core/number.h"
#include "core/walltime.h"
#include "policy/queue_partitions.h"
#include "policy/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace gpuq::policy {
namespace {

const Queue* queue_with(const Policy& policy, const std::string& qos)
{
    const auto found = std::find_if(policy.queues.begin(), policy.queues.end(),
                                    [&](const Queue& queue) { return qos_of(queue) == qos; });
    return found == policy.queues.end() ? nullptr : &*found;
}

/// The limit on GPU-hours ahead that the extension would exceed.
std::optional<std::string> refusal_of_ahead(const Policy& policy, const Queue& queue,
                                            const GpuTimeAhead& ahead)
{
    const Limits& limits = queue.limits;
    for (const auto& [whose, limit, time] :
         {std::tuple("a user", &limits.user.gpu_hours_ahead, ahead.user),
          std::tuple("an account", &limits.account.gpu_hours_ahead, ahead.account),
          std::tuple("all users together", &limits.all.gpu_hours_ahead, ahead.all)}) {
        if (*limit && time > std::int64_t{(*limit)->value} * 60) {
            return fmt::format("queue {} gives {} {} ahead{}: with this extension they would be {}",
                               queue.name, whose,
                               counted(static_cast<std::uint64_t>((*limit)->value), "GPU-hour"),
                               place_of(policy, (*limit)->line), (time + 59) / 60);
        }
    }
    return std::nullopt;
}

/// None of the conditions holds, of which one is enough.
std::optional<std::string> refusal_of_condition(const Policy& policy, const Queue& queue,
                                                const ExtendRequest& request)
{
    const auto& rule = queue.extend->only_if;
    if (!rule || (rule->value.save_known && request.saved) ||
        (rule->value.unless_others_wait && request.waiting.empty())) {
        return std::nullopt;
    }
    const std::string waits = fmt::format("job {} does", request.waiting);
    const std::string unsaved = "no checkpoint of this one is known";
    return fmt::format("queue {} extends a job only {}{}: {}", queue.name,
                       conditions_text(rule->value), place_of(policy, rule->line),
                       !rule->value.save_known           ? waits
                       : !rule->value.unless_others_wait ? unsaved
                                                         : waits + ", and " + unsaved);
}

} // namespace

std::string conditions_text(const ExtendConditions& conditions)
{
    const std::string_view waits = "while no other user waits for its nodes";
    const std::string_view saves = "after its program has saved a checkpoint";
    return conditions.unless_others_wait && conditions.save_known
               ? fmt::format("{} or {}", waits, saves)
               : std::string(conditions.save_known ? saves : waits);
}

bool depends_on_waiting(const ExtendRule& rule, bool saved)
{
    return rule.only_if && rule.only_if->value.unless_others_wait &&
           !(rule.only_if->value.save_known && saved);
}

const ExtendRule* extend_rule(const Policy& policy, const std::string& qos)
{
    const Queue* const queue = queue_with(policy, qos);
    return queue != nullptr && queue->extend ? &*queue->extend : nullptr;
}

bool limits_gpu_time_ahead(const Policy& policy, const std::string& qos)
{
    const Queue* const queue = queue_with(policy, qos);
    return queue != nullptr &&
           (queue->limits.user.gpu_hours_ahead || queue->limits.account.gpu_hours_ahead ||
            queue->limits.all.gpu_hours_ahead);
}

std::optional<std::string> refusal_of(const Policy& policy, const ExtendRequest& request)
{
    const Queue* const queue = queue_with(policy, request.qos);
    if (queue == nullptr) {
        return "the job is in no queue of the policy in force";
    }
    if (!queue->extend) {
        return fmt::format("queue {} does not extend running jobs{}", queue->name,
                           place_of(policy, queue->line));
    }
    for (const QueuePartition& one : partitions_of(policy, *queue)) {
        if (one.partition == request.partition && one.closed) {
            return fmt::format("pool {} closes: its jobs have their end{}", one.pool->name,
                               place_of(policy, one.pool->line));
        }
    }
    const ExtendRule& rule = *queue->extend;
    if (request.more > rule.by.value) {
        return fmt::format("queue {} extends a job by at most {} at a time{}", queue->name,
                           to_text(rule.by.value), place_of(policy, rule.by.line));
    }
    if (request.walltime + request.more > longest_extended(*queue)) {
        return fmt::format("queue {} extends a job to at most {}, by {} more than its time{}",
                           queue->name, to_text(longest_extended(*queue)),
                           to_text(rule.by.value * rule.times.value),
                           place_of(policy, rule.times.line > 0 ? rule.times.line : rule.line));
    }
    if (const auto refusal = refusal_of_condition(policy, *queue, request)) {
        return refusal;
    }
    return refusal_of_ahead(policy, *queue, request.ahead);
}

minutes longest_extended(const Queue& queue)
{
    return queue.max_time.value +
           (queue.extend ? queue.extend->by.value * queue.extend->times.value : minutes{0});
}

} // namespace gpuq::policy
