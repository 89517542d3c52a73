// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/nodes.h"

#include "core/strings.h"
#include "ports/nodes.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/gres.h"
#include "slurm/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <utility>

namespace gpuq {
namespace slurm {
namespace {

struct FreeNodes {
    void operator()(node_info_msg_t* nodes) const { slurm_free_node_info_msg(nodes); }
};
using Nodes = std::unique_ptr<node_info_msg_t, FreeNodes>;

struct FreePartitions {
    void operator()(partition_info_msg_t* partitions) const
    {
        slurm_free_partition_info_msg(partitions);
    }
};
using Partitions = std::unique_ptr<partition_info_msg_t, FreePartitions>;

std::string text(const char* value)
{
    return value == nullptr ? std::string() : std::string(value);
}

Result<Partitions> load_partitions()
{
    const MessageCapture capture{"partitions"};
    partition_info_msg_t* answer = nullptr;
    if (slurm_load_partitions(0, &answer, SHOW_LOCAL) != SLURM_SUCCESS) {
        if (errno == ESLURM_ACCESS_DENIED) {
            return fail(Error::Kind::denied,
                        "this site shows its partitions to operators only (PrivateData=partitions "
                        "in slurm.conf), and gpuq needs their limits: ask an operator");
        }
        return error_of(errno, Question::other, "can't ask Slurm for its partitions",
                        capture.text());
    }
    return Partitions(answer);
}

Result<Nodes> load_nodes(std::uint16_t show)
{
    const MessageCapture capture{"nodes"};
    node_info_msg_t* answer = nullptr;
    if (slurm_load_node(0, &answer, static_cast<std::uint16_t>(SHOW_LOCAL | show)) !=
        SLURM_SUCCESS) {
        return error_of(errno, Question::other, "can't ask Slurm for its nodes", capture.text());
    }
    return Nodes(answer);
}

std::optional<std::chrono::minutes> minutes_of(std::uint32_t minutes)
{
    if (minutes == INFINITE || minutes == NO_VAL) {
        return std::nullopt;
    }
    return std::chrono::minutes(minutes);
}

/// The queue of a gpuq policy to which a partition belongs, derived from its only QOS; empty: none.
std::string queue_of(const partition_info_t& info)
{
    constexpr std::string_view k_ours = "gpuq_";
    const std::string qos = text(info.allow_qos);
    return qos.starts_with(k_ours) && qos.find(',') == std::string::npos ? qos.substr(k_ours.size())
                                                                         : "";
}

/// Whether `cpu=64,mem=256G,node=2,gres/gpu=8` has GPUs.
bool counts_gpus(const std::string& tres)
{
    const auto items = split(tres, ",");
    return std::any_of(items.begin(), items.end(), [](std::string_view item) {
        constexpr std::string_view k_gpus = "gres/gpu=";
        return item.starts_with(k_gpus) && item.substr(k_gpus.size()) != "0";
    });
}

/// The names in a list such as `lab_a,lab_b`; none for NULL and for ALL.
std::vector<std::string> names_in(const char* list)
{
    const std::string all = text(list);
    if (all.empty() || all == "ALL") {
        return {};
    }
    const auto names = split(all, ",");
    return {names.begin(), names.end()};
}

Partition partition_of(const partition_info_t& info)
{
    Partition partition;
    partition.name = text(info.name);
    partition.max_time = minutes_of(info.max_time);
    partition.default_time = minutes_of(info.default_time);
    partition.is_default = (info.flags & PART_FLAG_DEFAULT) != 0;
    partition.up = info.state_up == PARTITION_UP;
    partition.accepts = (info.state_up & PARTITION_SUBMIT) != 0;
    partition.nodes = text(info.nodes);
    // max_nodes is INFINITE if there is no limit.
    partition.most_nodes = static_cast<int>(std::min(info.total_nodes, info.max_nodes));
    partition.submit_hosts = text(info.allow_alloc_nodes);
    partition.ruled = queue_of(info) == partition.name;
    partition.has_gpus = counts_gpus(text(info.tres_fmt_str));
    partition.least_nodes = info.min_nodes < INFINITE ? static_cast<int>(info.min_nodes) : 1;
    partition.accounts = names_in(info.allow_accounts);
    partition.denied_accounts = names_in(info.deny_accounts);
    partition.restricted = (info.flags & (PART_FLAG_ROOT_ONLY | PART_FLAG_REQ_RESV)) != 0;
    if (info.job_defaults_list != nullptr) {
        for_each<job_defaults_t>(info.job_defaults_list, [&](const job_defaults_t& each) {
            if (each.type == JOB_DEF_CPU_PER_GPU) {
                partition.cpus_per_gpu = static_cast<int>(
                    std::min<std::uint64_t>(each.value, std::numeric_limits<int>::max()));
            } else if (each.type == JOB_DEF_MEM_PER_GPU) {
                partition.memory_mib_per_gpu = each.value;
            }
        });
    }
    const bool preempts = info.preempt_mode != PREEMPT_MODE_OFF && info.grace_time != NO_VAL;
    partition.grace = std::chrono::seconds(preempts ? info.grace_time : 0);
    return partition;
}

/// Additional partitions that give a queue access to further pools, with the name of the queue.
using Inner = std::map<std::string, std::string>;

Inner inner_of(const partition_info_msg_t& message)
{
    Inner inner;
    for (std::uint32_t i = 0; i < message.record_count; ++i) {
        const partition_info_t& info = message.partition_array[i];
        const std::string queue = queue_of(info);
        if (!queue.empty() && queue != text(info.name)) {
            inner[text(info.name)] = queue;
        }
    }
    return inner;
}

std::vector<Partition> partitions_in(const partition_info_msg_t& message)
{
    const Inner inner = inner_of(message);
    std::vector<Partition> partitions;
    std::map<std::string, int> most;
    std::map<std::string, std::chrono::seconds> grace;
    for (std::uint32_t i = 0; i < message.record_count; ++i) {
        Partition partition = partition_of(message.partition_array[i]);
        const auto of = inner.find(partition.name);
        const std::string& queue = of == inner.end() ? partition.name : of->second;
        most[queue] = std::max(most[queue], partition.most_nodes.value_or(0));
        grace[queue] = std::max(grace[queue], partition.grace);
        if (of == inner.end()) {
            partitions.push_back(std::move(partition));
        }
    }
    // Slurm shows them only if they are in AccountingStorageTRES.
    const bool are_counted =
        std::any_of(partitions.begin(), partitions.end(),
                    [](const Partition& partition) { return partition.has_gpus == true; });
    for (Partition& partition : partitions) {
        partition.most_nodes = most[partition.name];
        partition.grace = grace[partition.name];
        partition.has_gpus = are_counted ? partition.has_gpus : std::nullopt;
    }
    return partitions;
}

/// True if the node accepts new jobs.
bool is_up(std::uint32_t state)
{
    constexpr std::uint32_t k_closed = NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_NO_RESPOND |
                                       NODE_STATE_MAINT | NODE_STATE_INVALID_REG;
    const std::uint32_t base = state & NODE_STATE_BASE;
    return (state & k_closed) == 0 &&
           (base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED);
}

std::optional<std::string> text_or_none(const char* value)
{
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// The node's queues, each once.
std::vector<std::string> queues_of(const node_info_t& info, const Inner& inner)
{
    std::vector<std::string> queues;
    const std::string names = text(info.partitions);
    for (const std::string_view word : fields(names, ",")) {
        const std::string name(word);
        const auto of = inner.find(name);
        const std::string& queue = of == inner.end() ? name : of->second;
        if (std::find(queues.begin(), queues.end(), queue) == queues.end()) {
            queues.push_back(queue);
        }
    }
    return queues;
}

Node node_of(const node_info_t& info, const Inner& inner)
{
    Node node;
    node.name = text(info.name);
    const std::string gres = text(info.gres);
    const auto used = text_or_none(info.gres_used);
    node.gpus = gpus_of_node(gres, used);
    if (gres.find("shard") != std::string::npos || gres.find("mps") != std::string::npos) {
        node.shares = shares_of_node(gres, used, tres_in_use(info));
    }
    node.partitions = queues_of(info, inner);
    node.up = is_up(info.node_state);
    node.cpus = info.cpus;
    node.memory_mib = info.real_memory;
    node.reserved = (info.node_state & NODE_STATE_RES) != 0;
    node.cpus_in_use = cpus_in_use(info);
    return node;
}

} // namespace

bool is_a_node_completing(const std::string& partition)
{
    const auto partitions = load_partitions();
    const auto nodes = load_nodes(0);
    if (!partitions || !nodes) {
        return false;
    }
    slurm_populate_node_partitions(nodes->get(), partitions->get());
    for (std::uint32_t i = 0; i < (*nodes)->record_count; ++i) {
        const node_info_t& info = (*nodes)->node_array[i];
        const std::string list = text(info.partitions);
        const auto names = fields(list, ",");
        if ((info.node_state & NODE_STATE_COMPLETING) != 0 &&
            std::find(names.begin(), names.end(), partition) != names.end()) {
            return true;
        }
    }
    return false;
}

} // namespace slurm

Result<std::vector<Partition>> SlurmCluster::partitions()
{
    TRY_ASSIGN(const slurm::Partitions message, slurm::load_partitions());
    return slurm::partitions_in(*message);
}

Result<Inventory> SlurmCluster::inventory()
{
    TRY_ASSIGN(const slurm::Partitions partitions, slurm::load_partitions());
    TRY_ASSIGN(const slurm::Nodes message, slurm::load_nodes(SHOW_DETAIL | SHOW_MIXED));
    slurm_populate_node_partitions(message.get(), partitions.get());
    const slurm::Inner inner = slurm::inner_of(*partitions);
    Inventory inventory{slurm::partitions_in(*partitions), {}};
    for (std::uint32_t i = 0; i < message->record_count; ++i) {
        if (message->node_array[i].name != nullptr) { // null: an unused slot
            inventory.nodes.push_back(slurm::node_of(message->node_array[i], inner));
        }
    }
    return inventory;
}

Result<std::string> SlurmCluster::address_of_node(const std::string& name)
{
    const slurm::MessageCapture capture{"a node"};
    node_info_msg_t* answer = nullptr;
    std::string node = name; // libslurm takes a char*
    if (slurm_load_node_single(&answer, node.data(), SHOW_LOCAL) != SLURM_SUCCESS) {
        return slurm::error_of(errno, slurm::Question::other,
                               fmt::format("can't ask Slurm for node {}", name), capture.text());
    }
    const slurm::Nodes nodes(answer);
    for (std::uint32_t i = 0; i < nodes->record_count; ++i) {
        const node_info_t& info = nodes->node_array[i];
        if (slurm::text(info.name) == name && info.node_addr != nullptr) {
            return std::string(info.node_addr);
        }
    }
    return fail(Error::Kind::missing, fmt::format("Slurm has no node {}", name));
}

bool SlurmCluster::binds_cpus()
{
    return slurm::has_cpu_binding();
}

Result<std::vector<Node>> SlurmCluster::nodes()
{
    TRY_ASSIGN(Inventory all, inventory());
    return std::move(all.nodes);
}

} // namespace gpuq
