// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/remedies.h"

#include "core/pending_reason.h"
#include "core/size.h"
#include "core/walltime.h"
#include "ports/nodes.h"
#include "runs/queues/free_gpus.h"
#include "runs/queues/queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace gpuq {
namespace {

using Kind = PendingReason::Kind;

bool has_one_of(const std::vector<std::string>& partitions, const std::string& queues)
{
    return std::any_of(partitions.begin(), partitions.end(), [&](const std::string& partition) {
        return !queue_of(queues, partition).empty();
    });
}

bool is_wanted_model(const Request& request, const GpuPool& pool)
{
    return !request.gpus.model || *request.gpus.model == pool.model;
}

int free_on_a_node(const GpuPool& pool)
{
    return pool.most_on_one_node.value_or(0);
}

std::string model_or_gpu(const GpuPool& pool)
{
    return pool.model.empty() ? "GPU" : pool.model;
}

/// The first of the run's queues: under a policy with several, the one with the lowest limit.
const Partition* queue_named(const Inventory& inventory, const std::string& name)
{
    const auto found =
        std::find_if(inventory.partitions.begin(), inventory.partitions.end(),
                     [&](const Partition& one) { return names_queue(name, one.name); });
    return found == inventory.partitions.end() ? nullptr : &*found;
}

bool takes(const Partition& queue, std::chrono::minutes time)
{
    return !queue.max_time || *queue.max_time >= time;
}

std::string minutes_option(std::chrono::minutes time)
{
    return fmt::format("-t {}m", time.count());
}

/// Alternatives with free GPUs for a run that waits for GPUs.
class Offers {
public:
    Offers(const Request& request, const Inventory& inventory)
        : m_request(request)
        , m_inventory(inventory)
        , m_pools(gpu_pools(inventory))
    {
    }

    std::vector<Advice> all() const
    {
        std::vector<Advice> list;
        if (m_request.gpus.count == 0) {
            return list;
        }
        for (const GpuPool& pool : m_pools) {
            if (has_one_of(pool.queues, m_request.queue)) {
                add(list, other_model(pool));
                add(list, fewer(pool));
            } else {
                add(list, other_queue(pool));
            }
        }
        return list;
    }

private:
    static void add(std::vector<Advice>& list, std::optional<Advice> advice)
    {
        if (advice) {
            list.push_back(*std::move(advice));
        }
    }

    bool has_room(const GpuPool& pool) const
    {
        if (const auto& share = m_request.gpus.share) {
            return pool.shares && pool.shares->kind == share->kind &&
                   pool.shares->free.value_or(0) >= share->parts;
        }
        return free_on_a_node(pool) >= m_request.gpus.count;
    }

    std::string free_text(const GpuPool& pool) const
    {
        if (m_request.gpus.share) {
            return fmt::format("{} of {} shares free in it now", pool.shares->free.value_or(0),
                               pool.shares->total);
        }
        return fmt::format("{} {} free in it now", *pool.free, model_or_gpu(pool));
    }

    std::optional<Advice> other_queue(const GpuPool& pool) const
    {
        const auto queue = best_queue(pool, m_inventory.partitions);
        if (!queue || !has_room(pool) || !is_wanted_model(m_request, pool)) {
            return std::nullopt;
        }
        if (takes(*queue, m_request.walltime)) {
            return Advice{"other_queue", fmt::format("gpuq run -p {} ...", queue->name),
                          free_text(pool)};
        }
        return Advice{
            "other_queue",
            fmt::format("gpuq run -p {} {} ...", queue->name, minutes_option(*queue->max_time)),
            fmt::format("{}, for {} at most", free_text(pool), to_text(*queue->max_time))};
    }

    std::optional<Advice> other_model(const GpuPool& pool) const
    {
        if (m_request.gpus.share || is_wanted_model(m_request, pool) || pool.model.empty() ||
            !has_room(pool)) {
            return std::nullopt;
        }
        return Advice{"other_model",
                      fmt::format("gpuq run -g {}:{} ...", pool.model, m_request.gpus.count),
                      fmt::format("{} {} free in the same queue now", *pool.free, pool.model)};
    }

    std::optional<Advice> fewer(const GpuPool& pool) const
    {
        const int most = free_on_a_node(pool);
        if (!is_wanted_model(m_request, pool) || most < 1 || most >= m_request.gpus.count) {
            return std::nullopt;
        }
        const std::string which = m_request.gpus.model ? *m_request.gpus.model + ":" : "";
        return Advice{"fewer_gpus", fmt::format("gpuq run -g {}{} ...", which, most),
                      fmt::format("{} {} free on one node now", most, model_or_gpu(pool))};
    }

    const Request& m_request;
    const Inventory& m_inventory;
    std::vector<GpuPool> m_pools;
};

Advice shorter_time()
{
    return {"shorter_time", "gpuq run -t TIME ...",
            "a shorter run may fit in before the jobs ahead of it"};
}

std::vector<Advice> less(const Request& request, const Inventory& inventory)
{
    const Partition* const queue = queue_named(inventory, request.queue);
    if (queue == nullptr || takes(*queue, request.walltime)) {
        const std::string most = most_of_a_node(inventory.nodes, request.queue);
        return {{"less", "gpuq run -g N -c N -t TIME ...",
                 most.empty() ? "ask for fewer GPUs, cores, nodes or less time" : most}};
    }
    std::vector<Advice> list = {
        {"shorter_time", fmt::format("gpuq run {} ...", minutes_option(*queue->max_time)),
         fmt::format("queue {} gives {} at most", queue->name, to_text(*queue->max_time))}};
    for (const Partition& other : inventory.partitions) {
        if (other.up && takes(other, request.walltime)) {
            list.push_back({"other_queue", fmt::format("gpuq run -p {} ...", other.name),
                            "that queue takes the time asked for"});
        }
    }
    return list;
}

std::vector<Advice> after_another(const Request& request)
{
    std::vector<Advice> list;
    if (request.after) {
        list.push_back({"wait", fmt::format("gpuq show {}", request.after->value),
                        "the run that must succeed first"});
    }
    return list;
}

std::vector<Advice> remedies_for(const Request& request, JobId job, std::string_view reason,
                                 const Inventory& inventory)
{
    std::vector<Advice> list;
    switch (kind_of_reason(reason)) {
    case Kind::others_first:
        list = Offers(request, inventory).all();
        list.push_back(shorter_time());
        return list;
    case Kind::no_resources:
    case Kind::closed:
        return Offers(request, inventory).all();
    case Kind::own_limit:
        return {{"own_runs", "gpuq ls", "one of your own runs has to end first"}};
    case Kind::group_limit:
        return {{"group_limit", "gpuq run -A ACCOUNT -q QOS ...",
                 "a run of your group has to end first, or another account or QOS has room"}};
    case Kind::too_large:
        return less(request, inventory);
    case Kind::after_another:
        return after_another(request);
    case Kind::never:
        return {{"stop", fmt::format("gpuq stop {}", job.value),
                 "it can't start any more: stop it and submit it again"}};
    case Kind::held_by_owner:
        return {{"release", fmt::format("scontrol release {}", job.value), "releases it"}};
    case Kind::held_by_others:
        return {{"operator", fmt::format("scontrol show job {}", job.value),
                 "an operator can see why and release it"}};
    case Kind::not_allowed:
        return {{"account", "gpuq run -A ACCOUNT -q QOS ...",
                 "sacctmgr show assoc user=$USER lists yours"}};
    case Kind::later:
    case Kind::soon:
    case Kind::unknown:
        break;
    }
    return list;
}

} // namespace

std::string most_of_a_node(const std::vector<Node>& nodes, const std::string& queue)
{
    std::map<std::string, int> gpus;
    int cpus = 0;
    std::uint64_t memory = 0;
    for (const Node& node : nodes) {
        if (!has_one_of(node.partitions, queue)) {
            continue;
        }
        cpus = std::max(cpus, node.cpus);
        memory = std::max(memory, node.memory_mib);
        for (const NodeGpus& each : node.gpus) {
            int& most = gpus[each.model.empty() ? "GPUs" : each.model];
            most = std::max(most, each.total);
        }
    }
    if (cpus == 0) {
        return "";
    }
    std::string text;
    for (const auto& [model, count] : gpus) {
        text += fmt::format("{}{} {}", text.empty() ? "" : " or ", count, model);
    }
    return fmt::format("a node of queue {} has {}, {} cores and {} at most", queue,
                       text.empty() ? "no GPU" : text, cpus, memory_text(memory));
}

std::vector<Advice> remedies(const Request& request, JobId job, std::string_view reason,
                             const Inventory& inventory)
{
    constexpr std::string_view k_run = "gpuq run ";
    std::vector<Advice> list = remedies_for(request, job, reason, inventory);
    for (Advice& advice : list) {
        if (request.sweep && advice.command.starts_with(k_run)) {
            advice.command.replace(0, k_run.size(), "gpuq sweep ");
        }
    }
    return list;
}

} // namespace gpuq
