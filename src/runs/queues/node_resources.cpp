// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/node_resources.h"

#include "runs/queues/eligibility.h"

#include <algorithm>

namespace gpuq {
namespace {

std::int32_t up(std::int32_t number, std::int32_t parts)
{
    return (number + parts - 1) / parts;
}

/// Adds or removes without leaving 0 to `most`: Slurm's data about jobs and nodes may disagree.
template <typename Number>
void add(Number& value, Number change, Number most)
{
    value = std::clamp<Number>(value + change, 0, most);
}

} // namespace

NodeResources::NodeResources(const Inventory& inventory)
{
    for (const gpuq::Node& node : inventory.nodes) {
        for (const NodeGpus& gpus : node.gpus) {
            m_models.try_emplace(gpus.model, static_cast<std::int32_t>(m_models.size()));
        }
    }
    m_whole.gpus.resize(inventory.nodes.size() * m_models.size());
    for (std::size_t i = 0; i < inventory.nodes.size(); ++i) {
        const gpuq::Node& node = inventory.nodes[i];
        m_names.try_emplace(node.name, static_cast<Node>(i));
        Amount whole{node.cpus, 0, 0, 0, static_cast<std::int64_t>(node.memory_mib)};
        for (const NodeGpus& gpus : node.gpus) {
            m_whole.gpus[i * m_models.size() + static_cast<std::size_t>(m_models[gpus.model])] +=
                gpus.total;
            whole.gpus += gpus.total;
            m_whole.all_gpus += gpus.total;
        }
        if (node.shares.size() == 1 && node.gpus.size() == 1) {
            whole.shares = node.shares.front().total;
            whole.per_gpu = node.shares.front().per_gpu;
        }
        m_whole.nodes.push_back(whole);
    }
    m_free = m_whole;
    for (std::size_t i = 0; i < m_free.nodes.size(); ++i) {
        const auto count = static_cast<std::size_t>(m_free.nodes[i].gpus) + 1;
        m_with_free.resize(std::max(m_with_free.size(), count),
                           NodeSet((m_free.nodes.size() + 63) / 64));
        for (std::size_t level = 0; level < count; ++level) {
            m_with_free[level][i / 64] |= std::uint64_t{1} << i % 64;
        }
    }
}

const NodeResources::NodeSet* NodeResources::with_free_gpus(std::int32_t count) const
{
    const auto level = static_cast<std::size_t>(std::max(count, 0));
    return level < m_with_free.size() ? &m_with_free[level] : nullptr;
}

std::int32_t NodeResources::model_index(const std::string& model)
{
    const auto found = m_models.find(model);
    return found == m_models.end() ? static_cast<std::int32_t>(m_models.size()) : found->second;
}

NodeResources::Need NodeResources::need_of(const Job& job, int nodes)
{
    Need need;
    need.cpus = up(job.size.cpus, nodes);
    need.memory_mib = static_cast<std::int64_t>(
        (job.size.memory_mib + static_cast<unsigned>(nodes) - 1) / static_cast<unsigned>(nodes));
    need.shares = job.size.share ? job.size.share->parts : 0;
    need.whole = job.size.whole_nodes;
    for (const RequestedGpus& asked : job.size.gpus) {
        need.gpus.emplace_back(asked.model.empty() ? -1 : model_index(asked.model),
                               up(asked.count, nodes));
        need.all_gpus += need.gpus.back().second;
    }
    return need;
}

std::vector<NodeResources::Part> NodeResources::held_by(const Job& job)
{
    std::vector<Part> parts;
    const auto hosts = hosts_of(job.nodes);
    const auto count = static_cast<std::int32_t>(hosts.size());
    for (const std::string& host : hosts) {
        const auto node = m_names.find(host);
        if (node == m_names.end()) {
            continue;
        }
        if (job.size.whole_nodes) {
            add_whole(node->second, parts);
            continue;
        }
        Part part{node->second,
                  0,
                  0,
                  up(job.size.cpus, count),
                  0,
                  static_cast<std::int64_t>(job.size.memory_mib) / count};
        part.shares = job.size.share ? job.size.share->parts : 0;
        parts.push_back(part);
    }
    for (const HeldGpus& gpus : job.held.whole) {
        const auto node = m_names.find(gpus.node);
        const std::int32_t model = model_index(gpus.model);
        if (node != m_names.end() && !job.size.whole_nodes &&
            model < static_cast<std::int32_t>(m_models.size())) {
            parts.push_back({node->second, model, gpus.count});
        }
    }
    return parts;
}

void NodeResources::copy_node(const NodeResources& from, Node node)
{
    m_free.nodes[node] = from.m_free.nodes[node];
    const auto begin = static_cast<std::ptrdiff_t>(node * m_models.size());
    std::copy_n(from.m_free.gpus.begin() + begin, m_models.size(), m_free.gpus.begin() + begin);
}

bool NodeResources::fits(const State& state, Node node, const Need& need,
                         std::vector<Part>& parts) const
{
    const Amount& free = state.nodes[node];
    if (need.cpus > free.cpus || need.memory_mib > free.memory_mib || need.shares > free.shares) {
        return false;
    }
    const std::size_t before = parts.size();
    parts.push_back({node, 0, 0, need.cpus, need.shares, need.memory_mib});
    const auto models = static_cast<std::int32_t>(m_models.size());
    const std::int32_t* const gpus = state.gpus.data() + node * m_models.size();
    for (const auto& [model, count] : need.gpus) {
        std::int32_t missing = count;
        for (std::int32_t i = std::max(model, 0); i < models && missing > 0; ++i) {
            std::int32_t left = gpus[i];
            for (std::size_t one = before; one < parts.size(); ++one) {
                left -= parts[one].model == i ? parts[one].gpus : 0;
            }
            const std::int32_t taken = std::min(left, missing);
            if (taken > 0) {
                missing -= taken;
                parts.push_back({node, i, taken});
            }
            if (model >= 0) {
                break;
            }
        }
        if (missing > 0) {
            parts.resize(before);
            return false;
        }
    }
    if (need.whole) {
        parts.resize(before);
        if (!is_idle(state, node)) {
            return false;
        }
        add_whole(node, parts);
    }
    return true;
}

bool NodeResources::is_idle(const State& state, Node node) const
{
    const auto begin = static_cast<std::ptrdiff_t>(node * m_models.size());
    const auto end = begin + static_cast<std::ptrdiff_t>(m_models.size());
    return state.nodes[node].cpus == m_whole.nodes[node].cpus &&
           std::equal(state.gpus.begin() + begin, state.gpus.begin() + end,
                      m_whole.gpus.begin() + begin);
}

void NodeResources::add_whole(Node node, std::vector<Part>& parts) const
{
    const Amount& whole = m_whole.nodes[node];
    parts.push_back({node, 0, 0, whole.cpus, 0, whole.memory_mib});
    for (std::size_t model = 0; model < m_models.size(); ++model) {
        if (const std::int32_t count = m_whole.gpus[node * m_models.size() + model]; count > 0) {
            parts.push_back({node, static_cast<std::int32_t>(model), count});
        }
    }
}

void NodeResources::change(const Part& part, int sign)
{
    Amount& free = m_free.nodes[part.node];
    const Amount& whole = m_whole.nodes[part.node];
    add(free.cpus, sign * part.cpus, whole.cpus);
    add(free.memory_mib, sign * part.memory_mib, whole.memory_mib);
    const std::size_t row = part.node * m_models.size();
    if (free.per_gpu > 0) {
        // Slurm fills a GPU with shares before it divides another one.
        add(free.shares, sign * (part.shares + part.gpus * free.per_gpu), whole.shares);
        for (std::size_t model = 0; model < m_models.size(); ++model) {
            if (const std::int32_t all = m_whole.gpus[row + model]; all > 0) {
                set_gpus(part.node, static_cast<std::int32_t>(model),
                         std::min(free.shares / free.per_gpu, all));
            }
        }
        return;
    }
    if (part.gpus > 0) {
        const std::size_t cell = row + static_cast<std::size_t>(part.model);
        std::int32_t count = m_free.gpus[cell];
        add(count, sign * part.gpus, m_whole.gpus[cell]);
        set_gpus(part.node, part.model, count);
    }
}

void NodeResources::set_gpus(Node node, std::int32_t model, std::int32_t count)
{
    std::int32_t& value = m_free.gpus[node * m_models.size() + static_cast<std::size_t>(model)];
    std::int32_t& all = m_free.nodes[node].gpus;
    const std::int32_t before = all;
    m_free.all_gpus += count - value;
    all += count - value;
    value = count;
    const std::uint64_t bit = std::uint64_t{1} << node % 64;
    for (std::int32_t level = all + 1; level <= before; ++level) {
        m_with_free[static_cast<std::size_t>(level)][node / 64] &= ~bit;
    }
    for (std::int32_t level = before + 1; level <= all; ++level) {
        m_with_free[static_cast<std::size_t>(level)][node / 64] |= bit;
    }
}

} // namespace gpuq
