// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/extend.h"

#include "core/walltime.h"
#include "policy/queue_partitions.h"
#include "policy/sentences.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::policy {
namespace {

const Queue* queue_with(const Policy& policy, const std::string& qos)
{
    const auto found = std::find_if(policy.queues.begin(), policy.queues.end(),
                                    [&](const Queue& queue) { return qos_of(queue) == qos; });
    return found == policy.queues.end() ? nullptr : &*found;
}

} // namespace

const ExtendRule* extend_rule(const Policy& policy, const std::string& qos)
{
    const Queue* const queue = queue_with(policy, qos);
    return queue != nullptr && queue->extend ? &*queue->extend : nullptr;
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
    if (rule.unless_others_wait && !request.waiting.empty()) {
        return fmt::format("queue {} extends a job only while no other user waits for its "
                           "nodes{}: job {} does",
                           queue->name, place_of(policy, rule.unless_others_wait->line),
                           request.waiting);
    }
    return std::nullopt;
}

minutes longest_extended(const Queue& queue)
{
    return queue.max_time.value +
           (queue.extend ? queue.extend->by.value * queue.extend->times.value : minutes{0});
}

} // namespace gpuq::policy
