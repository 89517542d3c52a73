// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/gpu_models.h"

#include "core/lower_case.h"
#include "core/number.h"
#include "core/size.h"
#include "ports/nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace gpuq {
namespace {

struct Model {
    std::string_view part; ///< of the lower-case name
    std::uint64_t gib;
};

// Longer parts precede the parts that they contain. Models sold in several sizes (a100, v100, h100)
// have the size in Slurm's name, or count as the smallest.
constexpr Model k_models[] = {
    {"k80", 12},    {"k40", 12},   {"m60", 8},    {"p100", 12},   {"p40", 24},    {"p4", 8},
    {"v100", 16},   {"t4", 16},    {"a100", 40},  {"a10g", 24},   {"a10", 24},    {"a16", 16},
    {"a30", 24},    {"a40", 48},   {"a2000", 6},  {"a4000", 16},  {"a4500", 20},  {"a5000", 24},
    {"a6000", 48},  {"a2", 16},    {"l40s", 48},  {"l40", 48},    {"l4", 24},     {"gh200", 96},
    {"gb200", 186}, {"b200", 180}, {"h200", 141}, {"h100", 80},   {"2080ti", 11}, {"2080", 8},
    {"1080ti", 11}, {"1080", 8},   {"3080", 10},  {"3090", 24},   {"4080", 16},   {"4090", 24},
    {"5090", 32},   {"mi100", 32}, {"mi210", 64}, {"mi250", 128}, {"mi300", 128},
};

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/// `80g` or `80gb` in `a100-80gb`.
std::optional<std::uint64_t> size_in_name(const std::string& name)
{
    for (std::size_t at = name.find('g'); at != std::string::npos; at = name.find('g', at + 1)) {
        std::size_t begin = at;
        while (begin > 0 && is_digit(name[begin - 1])) {
            --begin;
        }
        const std::string_view after = std::string_view(name).substr(at + 1);
        const bool ends = after.empty() || after == "b" || after == "ib" || after[0] == '-' ||
                          after[0] == '_' || after.starts_with("b-") || after.starts_with("b_");
        const bool is_own_part = begin > 0 && (name[begin - 1] == '-' || name[begin - 1] == '_' ||
                                               name[begin - 1] == '.');
        if (ends && is_own_part && begin < at) {
            return whole_number(std::string_view(name).substr(begin, at - begin));
        }
    }
    return std::nullopt;
}

std::string text_of(const std::vector<OfferedGpus>& offered)
{
    std::vector<std::string> parts;
    for (const OfferedGpus& gpus : offered) {
        parts.push_back(
            fmt::format("{} ({})", gpus.model.empty() ? "no model named" : gpus.model,
                        gpus.memory_mib ? memory_text(*gpus.memory_mib) : "memory not known"));
    }
    return parts.empty() ? "no GPU" : fmt::format("{}", fmt::join(parts, ", "));
}

} // namespace

std::optional<std::uint64_t> memory_of_model(std::string_view model)
{
    constexpr std::uint64_t k_gib = 1024; // MiB
    const std::string name = lower_case(model);
    if (const auto gib = size_in_name(name)) {
        return *gib * k_gib;
    }
    for (const Model& known : k_models) {
        const std::size_t at = name.find(known.part);
        const bool begins = at != std::string::npos && (at == 0 || !is_digit(name[at - 1]));
        if (begins &&
            (at + known.part.size() == name.size() || !is_digit(name[at + known.part.size()]))) {
            return known.gib * k_gib;
        }
    }
    return std::nullopt;
}

std::vector<OfferedGpus> offered_gpus(const Partition& queue, const std::vector<Node>& nodes)
{
    std::map<std::string, int> models;
    for (const Node& node : nodes) {
        if (std::count(node.partitions.begin(), node.partitions.end(), queue.name) == 0) {
            continue;
        }
        for (const NodeGpus& gpus : node.gpus) {
            models[gpus.model] = std::max(models[gpus.model], gpus.total);
        }
    }
    std::vector<OfferedGpus> offered;
    for (const auto& [model, most] : models) {
        offered.push_back({model, most, memory_of_model(model)});
    }
    return offered;
}

Result<std::string> model_with_memory(const GpuRequest& request, const std::string& queue,
                                      const std::vector<OfferedGpus>& offered)
{
    const OfferedGpus* best = nullptr;
    for (const OfferedGpus& gpus : offered) {
        const bool enough = gpus.memory_mib && *gpus.memory_mib >= *request.min_memory_mib &&
                            gpus.most >= request.count;
        if (enough && (best == nullptr || *gpus.memory_mib < *best->memory_mib)) {
            best = &gpus;
        }
    }
    if (best == nullptr) {
        return fail(Error::Kind::denied,
                    fmt::format("-g {}: queue {} has {}; name a model: -g MODEL:{}",
                                to_text(request), queue, text_of(offered), request.count));
    }
    return best->model;
}

Result<GpuShare> share_of_a_gpu(const GpuShare& asked, const std::vector<std::string>& queues,
                                const std::vector<Partition>& partitions,
                                const std::vector<Node>& nodes)
{
    const auto is_named = [&](const std::string& queue) {
        return std::find(queues.begin(), queues.end(), queue) != queues.end();
    };
    GpuShare share = asked;
    int most = 0;
    for (const Node& node : nodes) {
        if (!std::any_of(node.partitions.begin(), node.partitions.end(), is_named)) {
            continue;
        }
        for (const NodeShares& shares : node.shares) {
            const bool same = shares.kind == asked.kind;
            most = std::max(most, same ? shares.per_gpu : 0);
            if (same && shares.per_gpu >= asked.parts) {
                share.per_gpu = std::min(share.per_gpu.value_or(shares.per_gpu), shares.per_gpu);
            }
        }
    }
    if (!share.per_gpu) {
        const std::string names = fmt::format("queue {}", fmt::join(queues, ", "));
        const std::string has = most == 0 ? fmt::format("no GPU in {} has shares of this kind ({})",
                                                        names, word(asked.kind))
                                          : fmt::format("a GPU in {} has {} {}", names, most,
                                                        asked.kind == GpuShare::Kind::mps ? "mps"
                                                        : most == 1                       ? "shard"
                                                                    : "shards");
        return fail(Error::Kind::denied, fmt::format("-g {}:{}: {}; ask for a whole GPU: -g 1",
                                                     word(asked.kind), asked.parts, has));
    }
    share.cpus.reset();
    share.memory_mib.reset();
    for (const Partition& queue : partitions) {
        if (is_named(queue.name) && queue.cpus_per_gpu) {
            const int cpus = std::max(1, *queue.cpus_per_gpu * share.parts / *share.per_gpu);
            share.cpus = std::min(share.cpus.value_or(cpus), cpus);
        }
        if (is_named(queue.name) && queue.memory_mib_per_gpu) {
            const std::uint64_t memory = std::max<std::uint64_t>(
                1, *queue.memory_mib_per_gpu * static_cast<unsigned>(share.parts) /
                       static_cast<unsigned>(*share.per_gpu));
            share.memory_mib = std::min(share.memory_mib.value_or(memory), memory);
        }
    }
    return share;
}

Result<std::string> model_with_profile(const GpuRequest& request, const std::string& queue,
                                       const std::vector<OfferedGpus>& offered)
{
    const std::string profile = lower_case(*request.mig);
    for (const OfferedGpus& gpus : offered) {
        const std::string name = lower_case(gpus.model);
        const bool is_last =
            name == profile || name.ends_with("_" + profile) || name.ends_with("-" + profile);
        if (is_last && gpus.most >= request.count) {
            return gpus.model;
        }
    }
    std::vector<std::string> models;
    for (const OfferedGpus& gpus : offered) {
        models.push_back(
            fmt::format("{} {}", gpus.most, gpus.model.empty() ? "without a name" : gpus.model));
    }
    return fail(
        Error::Kind::denied,
        fmt::format("-g {}: a node of queue {} has {}", to_text(request), queue,
                    models.empty() ? "no GPU" : fmt::format("{}", fmt::join(models, ", "))));
}

Result<std::optional<std::string>> model_among(const GpuRequest& request,
                                               const std::vector<std::string>& queues,
                                               const QueueGpus& gpus)
{
    std::optional<Error> why_not;
    for (const std::string& queue : queues) {
        if (const auto found = gpus.find(queue); found != gpus.end()) {
            auto model = model_with_memory(request, queue, found->second);
            if (model) {
                return std::optional(*std::move(model));
            }
            why_not = model.error();
        }
    }
    if (why_not) {
        return fail(why_not->kind, why_not->text);
    }
    return std::optional<std::string>();
}

} // namespace gpuq
