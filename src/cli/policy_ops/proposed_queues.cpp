// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/proposed_queues.h"

#include "govern/plan.h"
#include "govern/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

namespace gpuq::cli {
namespace {

using Kind = SlurmObject::Kind;
using Lines = std::vector<std::string>;
using govern::as_number;

/// Fields of the object that have been expressed are removed from it; the rest can't be.
std::optional<std::string> take(SlurmObject& object, const std::string& field)
{
    const auto node = object.fields.extract(field);
    return node.empty() ? std::nullopt : std::optional(node.mapped());
}

/// `2880` minutes as `48h`.
std::string time_text(const std::string& minutes)
{
    const auto number = as_number(minutes);
    return number && *number % 60 == 0 ? fmt::format("{}h", *number / 60)
                                       : fmt::format("{}m", minutes);
}

/// A TRES limit that only concerns GPUs: `gres/gpu=4`.
std::optional<std::string> take_gpus(SlurmObject& qos, const std::string& field)
{
    constexpr std::string_view k_gpus = "gres/gpu=";
    const auto found = qos.fields.find(field);
    if (found == qos.fields.end() || !found->second.starts_with(k_gpus) ||
        !as_number(std::string_view(found->second).substr(k_gpus.size()))) {
        return std::nullopt;
    }
    return take(qos, field)->substr(k_gpus.size());
}

struct LimitField {
    const char* whose; ///< user, account, all or job
    const char* limit;
    const char* field;
    bool gpus;
};
constexpr std::array k_limits = {
    LimitField{"user", "gpus", "MaxTRESPU", true},
    LimitField{"user", "jobs", "MaxJobsPU", false},
    LimitField{"user", "queued", "MaxSubmitPU", false},
    LimitField{"account", "gpus", "MaxTRESPA", true},
    LimitField{"account", "jobs", "MaxJobsPA", false},
    LimitField{"account", "queued", "MaxSubmitPA", false},
    LimitField{"all", "gpus", "GrpTRES", true},
    LimitField{"all", "jobs", "GrpJobs", false},
    LimitField{"all", "queued", "GrpSubmit", false},
    LimitField{"job", "gpus", "MaxTRES", true},
};

/// `limits: {user: {gpus: 4}}` from the partition's QOS and its MaxNodes; empty if there are none.
std::string limits_text(SlurmObject& partition, SlurmObject& qos)
{
    std::map<std::string, Lines> of;
    for (const LimitField& row : k_limits) {
        if (const auto value = row.gpus ? take_gpus(qos, row.field) : take(qos, row.field)) {
            of[row.whose].push_back(fmt::format("{}: {}", row.limit, *value));
        }
    }
    if (const auto nodes = take(partition, "MaxNodes")) {
        of["job"].push_back("nodes: " + *nodes);
    }
    Lines parts;
    for (const auto& [whose, limits] : of) {
        parts.push_back(fmt::format("{}: {{{}}}", whose, fmt::join(limits, ", ")));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string rest_of(const SlurmObject& object)
{
    Lines fields;
    for (const auto& [name, value] : object.fields) {
        fields.push_back(fmt::format("{}={}", name, value));
    }
    return fmt::format("{}", fmt::join(fields, " "));
}

/// Each node belongs to one pool: node lists that overlap are no pools.
std::map<std::string, std::string> pool_names(const std::vector<SlurmObject>& partitions)
{
    std::map<std::string, std::string> names; // by node list
    for (const SlurmObject& partition : partitions) {
        names.emplace(partition.fields.at("Nodes"), fmt::format("pool{}", names.size() + 1));
    }
    return names;
}

void add_queue(SlurmObject partition, const std::string& pool,
               const std::vector<SlurmObject>& objects, Lines& lines)
{
    const std::string name = partition.name;
    take(partition, "Nodes");
    const auto time = take(partition, "MaxTime");
    const auto default_time = take(partition, "DefaultTime");
    const auto qos_name = take(partition, "QOS");
    const SlurmObject* const found =
        qos_name ? govern::find(objects, Kind::qos, *qos_name) : nullptr;
    SlurmObject qos = found != nullptr ? *found : SlurmObject{Kind::qos, "", {}, 0};
    lines.push_back(fmt::format("  {}:", name));
    lines.push_back(
        fmt::format("    time: {}", time ? time_text(*time) : "...  # no limit in Slurm"));
    if (default_time && time != default_time) {
        lines.push_back("    default_time: " + time_text(*default_time));
    }
    lines.push_back("    pools: " + pool);
    const auto cpus = take(partition, "DefCpuPerGPU");
    const auto memory = take(partition, "DefMemPerGPU");
    if (cpus || memory) {
        lines.push_back(fmt::format("    per_gpu: {{{}{}{}}}  # also the most that a job gets",
                                    cpus ? "cpus: " + *cpus : "", cpus && memory ? ", " : "",
                                    memory ? "memory: " + *memory + "M" : ""));
    }
    if (const auto accounts = take(partition, "AllowAccounts")) {
        lines.push_back(fmt::format("    allow: {{accounts: [{}]}}",
                                    fmt::join(govern::as_set(*accounts), ", ")));
    }
    if (const std::string limits = limits_text(partition, qos); !limits.empty()) {
        lines.push_back(fmt::format("    limits: {{{}}}", limits));
    }
    if (partition.fields["PreemptMode"] == "OFF" || partition.fields["PreemptMode"].empty()) {
        partition.fields.erase("PreemptMode"); // as in a pool without `lend`
    }
    if (!partition.fields.empty()) {
        lines.push_back("    # not expressible: " + rest_of(partition));
    }
    if (!qos.fields.empty()) {
        lines.push_back(
            fmt::format("    # not expressible, of QOS {}: {}", qos.name, rest_of(qos)));
    }
}

} // namespace

std::vector<std::string> proposed_queues(const std::vector<SlurmObject>& objects,
                                         const SlurmState& actual)
{
    const std::set<std::string> with_gpus(actual.gpu_nodes.begin(), actual.gpu_nodes.end());
    std::vector<SlurmObject> partitions;
    for (const SlurmObject& object : objects) {
        const auto nodes = object.fields.find("Nodes");
        if (object.kind == Kind::partition && nodes != object.fields.end()) {
            const auto all = govern::as_nodes(nodes->second, actual.nodes);
            if (std::any_of(all.begin(), all.end(),
                            [&](const std::string& node) { return with_gpus.contains(node); })) {
                partitions.push_back(object);
            }
        }
    }
    if (partitions.empty()) {
        return {};
    }
    const auto pools = pool_names(partitions);
    Lines lines{"pools:"};
    std::map<std::string, std::string> pool_of;
    for (const auto& [nodes, pool] : pools) {
        lines.push_back(fmt::format("  {}: {{nodes: \"{}\"}}", pool, nodes));
        for (const std::string& node : govern::as_nodes(nodes, actual.nodes)) {
            const auto [place, is_new] = pool_of.emplace(node, pool);
            if (!is_new) {
                lines.push_back(fmt::format("  # node {} is in {} too: a node belongs to one pool",
                                            node, place->second));
                break;
            }
        }
    }
    lines.emplace_back("queues:");
    for (const SlurmObject& partition : partitions) {
        add_queue(partition, pools.at(partition.fields.at("Nodes")), objects, lines);
    }
    return lines;
}

} // namespace gpuq::cli
