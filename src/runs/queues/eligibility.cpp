// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/eligibility.h"

#include "core/host_list.h"
#include "core/number.h"
#include "core/pending_reason.h"
#include "core/strings.h"
#include "runs/queues/queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace gpuq {
namespace {

/// True if one of `partitions` is a policy's inner partition of `queue`, and not itself a queue.
bool inner_of(const std::string& partitions, const std::string& queue, const Inventory& inventory)
{
    std::size_t begin = 0;
    while (begin < partitions.size()) {
        const std::size_t end = std::min(partitions.find(',', begin), partitions.size());
        const std::string name = partitions.substr(begin, end - begin);
        const bool known =
            std::any_of(inventory.partitions.begin(), inventory.partitions.end(),
                        [&](const Partition& partition) { return partition.name == name; });
        if (!known && queue_of(queue, name) == queue) {
            return true;
        }
        begin = end + 1;
    }
    return false;
}

bool leads_to(const std::string& partitions, const Node& node, const Inventory& inventory)
{
    return std::any_of(
        node.partitions.begin(), node.partitions.end(), [&](const std::string& queue) {
            return names_queue(partitions, queue) || inner_of(partitions, queue, inventory);
        });
}

constexpr std::uint64_t k_most_tasks = 4'000'000; // MaxArraySize is at most 4,000,001

/// The number of tasks in `7`, `0-9` or `0-30:2`; nullopt for `...`.
std::optional<int> tasks_in(std::string_view item)
{
    const std::size_t dash = std::min(item.find('-'), item.size());
    const std::size_t colon = std::min(item.find(':'), item.size());
    const auto first = whole_number(item.substr(0, dash));
    if (dash == item.size()) {
        return first ? std::optional(1) : std::nullopt;
    }
    const auto last = whole_number(item.substr(dash + 1, colon - dash - 1));
    const auto step =
        colon == item.size() ? std::uint64_t{1} : whole_number(item.substr(colon + 1));
    if (!first || !last || !step || *step == 0 || *last < *first || *last > k_most_tasks) {
        return std::nullopt;
    }
    return static_cast<int>((*last - *first) / *step + 1);
}

} // namespace

PendingTasks pending_tasks(const Job& job)
{
    const std::size_t begin = job.called.find("_[");
    if (begin == std::string::npos || !job.called.ends_with(']')) {
        return {};
    }
    std::string_view list(job.called);
    list = list.substr(begin + 2, list.size() - begin - 3);
    PendingTasks tasks{0, std::nullopt, true};
    if (const std::size_t percent = list.find('%'); percent != list.npos) {
        const auto most = whole_number(list.substr(percent + 1));
        if (most && *most > 0 && *most <= k_most_tasks) {
            tasks.at_once = static_cast<int>(*most);
        }
        list = list.substr(0, percent);
    }
    for (const std::string_view item : fields(list, ",")) {
        const auto count = tasks_in(item);
        tasks.all_shown = tasks.all_shown && count;
        tasks.count += count.value_or(0);
    }
    tasks.count = std::max(tasks.count, 1);
    return tasks;
}

std::set<std::string> hosts_of(const std::string& list)
{
    const auto hosts = expand_hosts(list);
    return hosts ? std::set<std::string>(hosts->begin(), hosts->end()) : std::set<std::string>();
}

std::vector<std::size_t> usable_nodes(const Job& job, const Inventory& inventory)
{
    const auto only = hosts_of(job.size.only_nodes);
    const auto excluded = hosts_of(job.size.excluded_nodes);
    std::vector<std::size_t> list;
    for (std::size_t i = 0; i < inventory.nodes.size(); ++i) {
        const Node& node = inventory.nodes[i];
        if (node.up && !node.reserved && leads_to(job.partition, node, inventory) &&
            (only.empty() || only.contains(node.name)) && !excluded.contains(node.name)) {
            list.push_back(i);
        }
    }
    return list;
}

int most_nodes(const Job& job)
{
    int gpus = 0;
    for (const RequestedGpus& asked : job.size.gpus) {
        gpus += asked.count;
    }
    return job.size.spreads ? std::max(job.size.nodes, gpus) : job.size.nodes;
}

std::optional<std::chrono::minutes> limit_of(const Job& job, const Inventory& inventory)
{
    std::optional<std::chrono::minutes> longest = job.walltime;
    if (job.walltime) {
        return longest;
    }
    for (const Partition& queue : inventory.partitions) {
        if (names_queue(job.partition, queue.name)) {
            const auto most = queue.default_time ? queue.default_time : queue.max_time;
            if (!most) {
                return std::nullopt;
            }
            longest = std::max(longest.value_or(*most), *most);
        }
    }
    return longest;
}

bool waits_for_queue(const Job& job)
{
    return job.reason.starts_with("Partition") &&
           kind_of_reason(job.reason) == PendingReason::Kind::closed;
}

std::string obstacle(const Job& job, const AllJobs& all)
{
    const auto kind = kind_of_reason(job.reason);
    if (kind == PendingReason::Kind::own_limit || kind == PendingReason::Kind::group_limit) {
        return "it is held by a job limit, not by the nodes";
    }
    if (waits_for_queue(job)) {
        return "its queue is closed";
    }
    if (!all.complete) {
        return "the jobs of other users are hidden here";
    }
    if (!job.priority) {
        return "its priority is not shown";
    }
    if (!job.size.other.empty()) {
        return fmt::format("it asks for {}, which gpuq does not compare with the nodes",
                           job.size.other);
    }
    return "";
}

} // namespace gpuq
