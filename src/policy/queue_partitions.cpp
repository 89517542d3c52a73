// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/queue_partitions.h"

#include <algorithm>
#include <string_view>

namespace gpuq::policy {
namespace {

constexpr int k_owner_tier = 60;
constexpr int k_own_tier = 40;
constexpr int k_sweep_tier = 30;
constexpr int k_more_tier = 20;
constexpr int k_overflow_tier = 10;

/// The queue's name, followed by the pool's unless it is the first pool of the queue.
std::string partition_name(const Queue& queue, const std::string& pool)
{
    const bool first = !queue.pools.value.empty() && queue.pools.value.front() == pool;
    return first ? queue.name : queue.name + "-" + pool;
}

void add(std::vector<QueuePartition>& queue_partitions, const Policy& policy, const Queue& queue,
         const std::vector<std::string>& pools, QueuePartition::Kind kind, int tier)
{
    for (const std::string& name : pools) {
        const Pool* pool = policy.pool(name);
        if (pool == nullptr) {
            continue;
        }
        const bool owner = pool->owner && pool->owner->value == queue.name;
        const std::string suffix = kind == QueuePartition::Kind::more ? "-more" : "";
        const bool guest =
            pool->lend.has_value() && !owner && (!pool->lend->only_sweeps || is_for_sweeps(queue));
        queue_partitions.push_back(
            {partition_name(queue, name) + suffix, pool, kind,
             owner && kind == QueuePartition::Kind::own ? k_owner_tier : tier, guest,
             pool->closed || (guest && pool->lend->closed)});
        --tier;
    }
}

} // namespace

std::vector<QueuePartition> partitions_of(const Policy& policy, const Queue& queue)
{
    std::vector<QueuePartition> queue_partitions;
    add(queue_partitions, policy, queue, queue.pools.value, QueuePartition::Kind::own,
        is_for_sweeps(queue) ? k_sweep_tier : k_own_tier);
    if (queue.limits.has_soft()) {
        add(queue_partitions, policy, queue, queue.pools.value, QueuePartition::Kind::more,
            k_more_tier);
    }
    add(queue_partitions, policy, queue, queue.overflow.value, QueuePartition::Kind::overflow,
        k_overflow_tier);
    return queue_partitions;
}

std::string qos_of(const Queue& queue)
{
    return "gpuq_" + queue.name;
}

std::string soft_qos_of(const Queue& queue)
{
    return "gpuq_" + queue.name + "_soft";
}

} // namespace gpuq::policy
