// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/check_queue.h"
#include "policy/sections.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::policy {
namespace {

using yaml::Node;

constexpr std::string_view k_queue = "sweeps";
constexpr int k_whole = 100; ///< percent

struct Caps {
    Maybe<int> max_workers; ///< of a user
    Maybe<int> max_share;   ///< in percent of the GPUs of its pools
    Maybe<std::vector<std::string>> pools;
    Maybe<minutes> time;
    Maybe<seconds> grace;
};

Rule<int> percent_in(Reader& reader, const Node& node)
{
    if (node.kind != Node::Kind::text || !node.text.ends_with('%')) {
        reader.note(node, "not-a-number",
                    fmt::format("'{}' is not a share in percent, such as 50%", node.text));
        return {};
    }
    Node digits = node;
    digits.text.pop_back();
    return reader.number(digits, 1, k_whole);
}

/// The GPUs of `pools`; notes why they are not known.
std::optional<int> gpus_of(Reader& reader, const Policy& policy,
                           const Rule<std::vector<std::string>>& pools, const Node& node)
{
    int gpus = 0;
    for (const std::string& name : pools.value) {
        const Pool* const pool = policy.pool(name);
        if (pool == nullptr) {
            continue; // reported by check()
        }
        const bool all = pool->nodes.value == std::vector<std::string>{"ALL"};
        if (all || pool->gpus.value.empty()) {
            reader.note(node, "missing",
                        fmt::format("a share of pool {} needs its {}", name,
                                    all ? "nodes, by their names" : "gpus"));
            return std::nullopt;
        }
        gpus += static_cast<int>(pool->nodes.value.size()) * pool->gpus_per_node();
    }
    return gpus;
}

/// Lets sweeps be guests of `pool` if nothing else is: they give way to the jobs of its
/// other queues that have a higher tier (queue_partitions.h).
void lend(const Policy& policy, Pool& pool, const Caps& caps, const Node& node)
{
    const bool is_shared = std::any_of(policy.queues.begin(), policy.queues.end(),
                                       [&](const Queue& queue) { return is_used(queue, pool); });
    if (is_shared && !pool.lend) {
        pool.lend = Lend{.only_sweeps = true, .line = node.line};
        pool.lend->grace = caps.grace.value_or(pool.lend->grace);
    }
}

Rule<std::vector<std::string>> all_pools(const Policy& policy, const Node& node)
{
    Rule<std::vector<std::string>> names{{}, node.line, node.column};
    for (const Pool& pool : policy.pools) {
        names.value.push_back(pool.name);
    }
    return names;
}

Rule<minutes> longest_time(const Policy& policy, const Node& node)
{
    Rule<minutes> longest{minutes{0}, node.line, node.column};
    for (const Queue& queue : policy.queues) {
        longest.value = std::max(longest.value, queue.max_time.value);
    }
    return longest;
}

Caps caps_in(Reader& reader, const Node& node)
{
    Caps caps;
    reader.map(
        node, "sweeps",
        {
            {"max_workers", [&](const Node& value) { caps.max_workers = reader.number(value, 1); }},
            {"max_share", [&](const Node& value) { caps.max_share = percent_in(reader, value); }},
            {"pools", [&](const Node& value) { caps.pools = reader.some_names(value); }},
            {"time", [&](const Node& value) { caps.time = reader.walltime(value); }},
            {"grace", [&](const Node& value) { caps.grace = reader.duration(value); }},
        });
    return caps;
}

} // namespace

void add_sweep_queue(Reader& reader, Policy& policy, const Node& node)
{
    const Caps caps = caps_in(reader, node);
    const auto present =
        std::find_if(policy.queues.begin(), policy.queues.end(), [](const Queue& queue) {
            return is_for_sweeps(queue) || queue.name == k_queue;
        });
    if (present != policy.queues.end()) {
        reader.note(
            node, "twice",
            fmt::format("queue {} (line {}) and `sweeps` would both be for sweeps: remove one",
                        present->name, present->line));
        return;
    }
    Queue queue;
    queue.name = k_queue;
    queue.is_implied = true;
    queue.line = node.line;
    queue.through = Rule<std::string>{"sweep", node.line, node.column};
    queue.pools = caps.pools ? *caps.pools : all_pools(policy, node);
    queue.max_time = caps.time ? *caps.time : longest_time(policy, node);
    queue.default_time.value = queue.max_time.value;
    queue.limits.user.jobs = caps.max_workers;
    if (caps.max_share) {
        if (const auto gpus = gpus_of(reader, policy, queue.pools, node)) {
            queue.limits.all.gpus = Rule<int>{std::max(1, *gpus * caps.max_share->value / k_whole),
                                              caps.max_share->line, caps.max_share->column};
        }
    }
    for (Pool& pool : policy.pools) {
        if (is_used(queue, pool)) {
            lend(policy, pool, caps, node);
        }
    }
    policy.queues.push_back(std::move(queue));
}

} // namespace gpuq::policy
