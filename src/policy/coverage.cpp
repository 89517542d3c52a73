// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/coverage.h"

#include "policy/queue_partitions.h"

#include <algorithm>

namespace gpuq::policy {
namespace {

using Names = std::vector<std::string>;

/// Whether every command that may submit jobs to `queue` may submit them to `first`.
bool covers_submitters(const Queue& first, const Queue& queue)
{
    const bool is_same =
        first.through && queue.through && first.through->value == queue.through->value;
    return is_same || (!first.through && !is_for_sweeps(queue));
}

/// The pools are not compared: a queue that might take other shares is not reported.
bool covers_shares(const Queue& first, const Queue& queue)
{
    return !queue.limits.most_shares_of_a_job() ||
           (first.limits.most_shares_of_a_job() && first.pools == queue.pools &&
            first.limits.most_shares_of_a_job()->value >=
                queue.limits.most_shares_of_a_job()->value);
}

/// Whether every job for `queue` fits `first` by its models and its GPUs on one node.
bool covers_models(const Policy& policy, const Queue& first, const Queue& queue)
{
    const auto has = [&](const Queue& one, const std::string& model, int on_node) {
        const bool named =
            !one.models || std::find(one.models->value.begin(), one.models->value.end(), model) !=
                               one.models->value.end();
        const auto queue_partitions = partitions_of(policy, one);
        return named &&
               std::any_of(queue_partitions.begin(), queue_partitions.end(),
                           [&](const QueuePartition& queue_partition) {
                               const bool known = !queue_partition.pool->gpus.value.empty();
                               return queue_partition.pool->has_model(model) &&
                                      (!known || queue_partition.pool->gpus_per_node() >= on_node);
                           });
    };
    for (const QueuePartition& queue_partition : partitions_of(policy, queue)) {
        for (const GpuCount& gpu : queue_partition.pool->gpus.value) {
            const bool gives = has(queue, gpu.model, gpu.count);
            if (gives && !has(first, gpu.model, queue_partition.pool->gpus_per_node())) {
                return false;
            }
        }
    }
    return true;
}

} // namespace

bool covers(const Policy& policy, const Queue& first, const Queue& queue)
{
    const auto holds = [](const Names& all, const Names& some) {
        return std::all_of(some.begin(), some.end(), [&](const std::string& name) {
            return std::find(all.begin(), all.end(), name) != all.end();
        });
    };
    const auto at_least = [](const auto& one, const auto& other) {
        return !one || (other && one->value >= other->value);
    };
    const bool user_count =
        first.access.is_open() ||
        (!queue.access.is_open() && holds(first.access.users, queue.access.users) &&
         holds(first.access.accounts, queue.access.accounts));
    const bool chains = first.chain || !queue.chain; // a run beyond the time of `first` is a chain
    return user_count && chains && covers_submitters(first, queue) &&
           first.max_time.value >= queue.max_time.value &&
           at_least(first.limits.most_gpus_of_a_job(), queue.limits.most_gpus_of_a_job()) &&
           at_least(first.limits.job.nodes, queue.limits.job.nodes) &&
           at_least(first.cpus_per_gpu, queue.cpus_per_gpu) &&
           at_least(first.memory_per_gpu_mib, queue.memory_per_gpu_mib) &&
           covers_shares(first, queue) && covers_models(policy, first, queue);
}

} // namespace gpuq::policy
