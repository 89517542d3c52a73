// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/plan.h"

#include "core/number.h"
#include "embedded/texts.h"
#include "policy/read.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <string_view>

namespace gpuq::embedded {
namespace {

constexpr int k_most_nodes = 64;
constexpr int k_most_shards = 64;
/// Minimum memory per GPU of a stand-in node, even beyond the machine's memory: no real work runs
/// on it.
constexpr std::uint64_t k_stand_in_memory_per_gpu = 1024;
/// CPUs of a stand-in node not claimed by a GPU, for jobs without GPUs.
constexpr int k_spare_cpus = 4;

bool is_name(std::string_view text, std::string_view also)
{
    return !text.empty() && text.size() <= 40 && std::all_of(text.begin(), text.end(), [&](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               also.find(c) != std::string_view::npos;
    });
}

Error refused(const std::string& text)
{
    return fail(Error::Kind::usage, text);
}

Result<void> check(const Wishes& wishes, const MachineFacts& machine)
{
    // Slurm lower-cases cluster names and uses them in table names.
    if (!is_name(wishes.name.value_or("local"), "_-")) {
        return refused(fmt::format("--name '{}': use letters, digits, - and _ only", *wishes.name));
    }
    const std::string prefix = wishes.node_prefix.value_or("n");
    if (!is_name(prefix, "-") || std::isdigit(static_cast<unsigned char>(prefix.back())) != 0) {
        return refused(fmt::format(
            "--node-name '{}': use letters, digits and - only; a number is appended", prefix));
    }
    if (wishes.nodes && (*wishes.nodes < 1 || *wishes.nodes > k_most_nodes)) {
        return refused(
            fmt::format("--nodes {}: give a number from 1 to {}", *wishes.nodes, k_most_nodes));
    }
    if (wishes.shards && *wishes.shards > k_most_shards) {
        return refused(
            fmt::format("--shards {}: give a number from 0 to {}", *wishes.shards, k_most_shards));
    }
    if (wishes.model && !is_name(*wishes.model, "_-.")) {
        return refused(
            fmt::format("--model '{}': use letters, digits, - _ and . only", *wishes.model));
    }
    for (const std::string& line : wishes.extra_lines) {
        if (line.find('\n') != std::string::npos) {
            return refused("--slurm-conf: one line at a time");
        }
    }
    if (wishes.confinement == Confinement::cgroups && machine.cgroup_plugin.empty()) {
        return refused(fmt::format("--cgroups on: Slurm can not use the cgroups of this machine "
                                   "({}); without the option jobs run unconfined",
                                   machine.cgroups_obstacle));
    }
    return {};
}

void use_hardware(ClusterSpec& spec, const MachineFacts& machine)
{
    spec.gpus = machine.gpus;
    spec.cpus = machine.cores;
    spec.memory_mib = machine.memory_mib;
    spec.topology = machine.topology;
}

void use_stand_ins(ClusterSpec& spec, const MachineFacts& machine,
                   const std::vector<GpuDevice>& stand_ins)
{
    const int count = static_cast<int>(stand_ins.size());
    spec.stand_ins = true;
    spec.gpus = stand_ins;
    spec.cpus = std::max(machine.cores, count * std::max(spec.shards, 1) + k_spare_cpus);
    spec.memory_mib = std::max(machine.memory_mib / static_cast<std::uint64_t>(spec.nodes),
                               stand_ins.size() * k_stand_in_memory_per_gpu);
}

} // namespace

Wishes merge(const Wishes& wishes, const ClusterSpec& former)
{
    Wishes merged = wishes;
    merged.name = wishes.name.value_or(former.name);
    merged.node_prefix = wishes.node_prefix.value_or(former.node_prefix);
    merged.nodes = wishes.nodes.value_or(former.nodes);
    merged.shards = wishes.shards.value_or(former.shards);
    if (former.stand_ins) {
        merged.gpus = wishes.gpus.value_or(static_cast<int>(former.gpus.size()));
        if (!former.gpus.empty() && !former.gpus.front().model.empty()) {
            merged.model = wishes.model.value_or(former.gpus.front().model);
        }
    }
    if (!merged.confinement) {
        merged.confinement = former.confinement;
    }
    if (merged.extra_lines.empty()) {
        merged.extra_lines = former.extra_lines;
    }
    return merged;
}

Result<NodesOfPolicy> nodes_of_policy(const std::string& text)
{
    TRY_ASSIGN(const policy::Reading reading, policy::read_policy(text, "policy"));
    if (has_errors(reading.findings)) {
        return refused(to_line(reading.findings.front(), "policy"));
    }
    NodesOfPolicy nodes;
    for (const policy::Queue& queue : reading.policy.queues) {
        const auto cpus = queue.cpus_per_gpu ? queue.cpus_per_gpu->value : 1;
        const auto memory = queue.memory_per_gpu_mib ? queue.memory_per_gpu_mib->value : 0;
        nodes.cpus_per_gpu = std::max(nodes.cpus_per_gpu, cpus);
        nodes.memory_per_gpu = std::max(nodes.memory_per_gpu, memory);
    }
    if (reading.policy.queues.empty()) {
        return refused("the policy has no queues: it describes a Slurm that exists");
    }
    if (reading.policy.pools.front().nodes.value == std::vector<std::string>{"ALL"}) {
        return nodes;
    }
    nodes.pools = reading.policy.pools;
    std::size_t count = 0;
    for (const policy::Pool& pool : nodes.pools) {
        count += pool.nodes.value.size();
        if (pool.gpus.value.empty()) {
            return refused(fmt::format("pool {} does not specify the GPUs of its nodes (gpus: "
                                       "k80:4), which simulated nodes need",
                                       pool.name));
        }
    }
    if (count > k_most_nodes) {
        return refused(fmt::format("the policy has {} nodes; one machine can simulate at most {}",
                                   count, k_most_nodes));
    }
    return nodes;
}

void use_pools(ClusterSpec& spec, const NodesOfPolicy& nodes,
               const std::vector<GpuDevice>& stand_ins)
{
    for (const policy::Pool& pool : nodes.pools) {
        std::vector<GpuDevice> gpus;
        for (const policy::GpuCount& group : pool.gpus.value) {
            for (int i = 0; i < group.count && gpus.size() < stand_ins.size(); ++i) {
                gpus.push_back({group.model, stand_ins[gpus.size()].file});
            }
        }
        for (const std::string& name : pool.nodes.value) {
            spec.named.push_back({name, gpus,
                                  pool.threads_per_core ? pool.threads_per_core->value : 1, "",
                                  pool.shares ? pool.shares->per_gpu.value : spec.shards});
        }
    }
    spec.nodes = static_cast<int>(spec.named.size());
    const auto most = stand_ins.size();
    spec.cpus = std::max(spec.cpus, static_cast<int>(most) * nodes.cpus_per_gpu + k_spare_cpus);
    spec.memory_mib =
        std::max(spec.memory_mib, most * nodes.memory_per_gpu + k_stand_in_memory_per_gpu);
}

Result<ClusterSpec> plan(const Wishes& wishes, const MachineFacts& machine,
                         const std::vector<GpuDevice>& stand_ins)
{
    TRY(check(wishes, machine));
    ClusterSpec spec;
    spec.name = wishes.name.value_or("local");
    spec.node_prefix = wishes.node_prefix.value_or("n");
    spec.nodes = wishes.nodes.value_or(1);
    spec.user = machine.user;
    spec.shards = wishes.shards.value_or(0);
    spec.extra_lines = wishes.extra_lines;
    spec.confinement = wishes.confinement.value_or(Confinement::parents);
    spec.cgroup_plugin = machine.cgroup_plugin;
    spec.slurm_release = machine.slurm_release;
    if (wishes.gpus) {
        use_stand_ins(spec, machine, stand_ins);
        return spec;
    }
    if (machine.gpus.empty()) {
        return fail(Error::Kind::missing,
                    "this machine has no NVIDIA GPU with a driver (/dev/nvidia0 is missing); "
                    "`gpuq cluster up --gpus 4` starts a cluster with simulated GPUs");
    }
    if (wishes.model || spec.nodes > 1) {
        return refused("--model and --nodes go with --gpus: real GPUs have their own model and "
                       "belong to one node");
    }
    use_hardware(spec, machine);
    return spec;
}

std::string describe(const ClusterSpec& spec)
{
    if (!spec.named.empty()) {
        std::size_t all = 0;
        for (const NamedNode& node : spec.named) {
            all += node.gpus.size();
        }
        return fmt::format("{} of its {} with {} (simulated)", counted(spec.named.size(), "node"),
                           spec.policy || spec.conf_lines.empty() ? "policy" : "slurm.conf",
                           counted(all, "GPU"));
    }
    const std::size_t gpus = spec.gpus.size();
    std::string text = spec.nodes == 1 ? "1 node" : fmt::format("{} nodes", spec.nodes);
    text += gpus == 1 ? " with 1 GPU" : fmt::format(" with {} GPUs", gpus);
    text += spec.nodes == 1 ? "" : " each";
    std::string notes = gpus == 0 || spec.gpus.front().model.empty() ? "" : spec.gpus.front().model;
    if (spec.stand_ins && gpus > 0) {
        notes += notes.empty() ? "simulated" : ", simulated";
    }
    if (spec.shards > 0 && gpus > 0) {
        notes += fmt::format("{}{} per GPU", notes.empty() ? "" : ", ",
                             counted(static_cast<std::uint64_t>(spec.shards), "shard"));
    }
    return notes.empty() ? text : fmt::format("{} ({})", text, notes);
}

} // namespace gpuq::embedded
