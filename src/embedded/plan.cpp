// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/plan.h"

#include "embedded/texts.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <string_view>

namespace gpuq::embedded {
namespace {

constexpr int k_most_nodes = 64;
/// A stand-in node gives every GPU at least this, whatever the machine has: nobody computes there.
constexpr std::uint64_t k_stand_in_memory_per_gpu = 1024;
/// CPUs of a stand-in node that no GPU claims: for jobs without one.
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
    // Slurm folds cluster names to lower case and uses them in table names.
    if (!is_name(wishes.name.value_or("local"), "_-")) {
        return refused(fmt::format("--name '{}': letters, digits, - and _ make a cluster's name",
                                   *wishes.name));
    }
    const std::string prefix = wishes.node_prefix.value_or("n");
    if (!is_name(prefix, "-") || std::isdigit(static_cast<unsigned char>(prefix.back())) != 0) {
        return refused(
            fmt::format("--node-name '{}': letters, digits and - make a node's name, and "
                        "its number follows",
                        prefix));
    }
    if (wishes.nodes && (*wishes.nodes < 1 || *wishes.nodes > k_most_nodes)) {
        return refused(
            fmt::format("--nodes {}: give a number from 1 to {}", *wishes.nodes, k_most_nodes));
    }
    if (wishes.model && !is_name(*wishes.model, "_-.")) {
        return refused(fmt::format("--model '{}': letters, digits, - _ and . make a GPU's model",
                                   *wishes.model));
    }
    for (const std::string& line : wishes.extra_lines) {
        if (line.find('\n') != std::string::npos) {
            return refused("--slurm-conf: one line at a time");
        }
    }
    if (wishes.confinement == Confinement::cgroups && !machine.cgroups) {
        return refused(machine.is_root ? "--cgroups on: Slurm can not use the cgroups of this "
                                         "machine; without the option jobs run unconfined"
                                       : "--cgroups on needs root");
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
    spec.cpus = std::max(machine.cores, count + k_spare_cpus);
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

Result<ClusterSpec> plan(const Wishes& wishes, const MachineFacts& machine,
                         const std::vector<GpuDevice>& stand_ins)
{
    TRY(check(wishes, machine));
    ClusterSpec spec;
    spec.name = wishes.name.value_or("local");
    spec.node_prefix = wishes.node_prefix.value_or("n");
    spec.nodes = wishes.nodes.value_or(1);
    spec.user = machine.user;
    spec.extra_lines = wishes.extra_lines;
    spec.confinement = wishes.confinement.value_or(Confinement::parents);
    if (wishes.gpus) {
        use_stand_ins(spec, machine, stand_ins);
        return spec;
    }
    if (machine.gpus.empty()) {
        return fail(Error::Kind::missing,
                    "this machine has no NVIDIA GPU that the driver shows (/dev/nvidia0); "
                    "`gpuq cluster up --gpus 4` brings up stand-ins, for trying and testing");
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
    const std::size_t gpus = spec.gpus.size();
    std::string text = spec.nodes == 1 ? "1 node" : fmt::format("{} nodes", spec.nodes);
    text += gpus == 1 ? " with 1 GPU" : fmt::format(" with {} GPUs", gpus);
    text += spec.nodes == 1 ? "" : " each";
    std::string notes = gpus == 0 || spec.gpus.front().model.empty() ? "" : spec.gpus.front().model;
    if (spec.stand_ins && gpus > 0) {
        notes += notes.empty() ? "stand-ins" : ", stand-ins";
    }
    return notes.empty() ? text : fmt::format("{} ({})", text, notes);
}

} // namespace gpuq::embedded
