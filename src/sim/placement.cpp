// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/placement.h"

#include <algorithm>
#include <limits>

namespace gpuq::sim {
namespace {

constexpr int k_endless = std::numeric_limits<int>::max() / 4;

/// Adjacent usable nodes of one weight: [first, last).
struct Run {
    std::size_t first = 0;
    std::size_t last = 0;
    int weight = 0;
    std::int64_t size = 0; ///< total of their free resources

    int nodes() const { return static_cast<int>(last - first); }
};

/// Slurm compares CPUs; if they are not counted, GPUs are used instead.
int size_of(const FreeSpace& space)
{
    return space.cpus >= k_endless / 2 ? space.gpus : space.cpus;
}

/// The value by which nodes are compared for a job.
int counted(const Need& need, const FreeSpace& space)
{
    return need.counted > 0 ? std::min(need.counted, size_of(space)) : size_of(space);
}

bool is_better(const Run& run, const Run& best, int nodes)
{
    if (run.weight != best.weight) {
        return run.weight < best.weight;
    }
    const bool enough = run.nodes() >= nodes;
    const bool best_is_enough = best.nodes() >= nodes;
    if (enough != best_is_enough) {
        return enough;
    }
    return enough ? run.size < best.size : run.size > best.size;
}

std::size_t tightest(const Run& run, const std::vector<FreeSpace>& spaces)
{
    std::size_t best = run.first;
    for (std::size_t node = run.first + 1; node < run.last; ++node) {
        if (size_of(spaces[node]) < size_of(spaces[best])) {
            best = node;
        }
    }
    return best;
}

/// Of the first GPU that has enough.
GpuParts shares_on(const FreeSpace& space, int shares)
{
    GpuParts parts;
    for (int gpu = 0; gpu < GpuParts::k_most_gpus; ++gpu) {
        if (space.parts.on(gpu) >= shares) {
            parts.add(gpu, shares);
            break;
        }
    }
    return parts;
}

/// The first GPUs of which no job has a share.
GpuParts whole_on(const FreeSpace& space, int gpus)
{
    GpuParts parts;
    for (int gpu = 0; space.per_gpu > 0 && gpus > 0 && gpu < GpuParts::k_most_gpus; ++gpu) {
        if (space.parts.on(gpu) == space.per_gpu) {
            parts.add(gpu, space.per_gpu);
            --gpus;
        }
    }
    return parts;
}

} // namespace

std::vector<FreeSpace> empty_spaces(const std::vector<Node>& nodes)
{
    std::vector<FreeSpace> spaces;
    spaces.reserve(nodes.size());
    for (const Node& node : nodes) {
        const GpuParts parts = node.per_gpu > 0 ? GpuParts(node.gpus, node.per_gpu) : GpuParts();
        spaces.push_back({node.gpus, node.cpus > 0 ? node.cpus : k_endless,
                          node.memory_mib > 0 ? node.memory_mib : k_endless, node.per_gpu, parts});
    }
    return spaces;
}

std::optional<Need> need_of(const Job& job, int gpus_per_node)
{
    Need need;
    need.counted = job.cpus_per_node;
    need.min_nodes = job.min_nodes;
    need.shares = job.shares;
    if (job.gpus == 0) {
        need.nodes = std::max(1, job.nodes);
        need.gpus = need.gpus_in_all = 0;
        need.cpus = job.cpus_per_node;
        need.memory_mib = job.memory_per_node_mib;
        return need;
    }
    if (gpus_per_node < 1 || job.nodes > job.gpus) {
        return std::nullopt;
    }
    need.gpus_in_all = job.gpus;
    need.nodes = job.nodes > 0 ? job.nodes : (job.gpus + gpus_per_node - 1) / gpus_per_node;
    need.gpus = (job.gpus + need.nodes - 1) / need.nodes;
    if (need.gpus > gpus_per_node || need.gpus * (need.nodes - 1) >= job.gpus) {
        return std::nullopt;
    }
    need.cpus = need.gpus * job.cpus_per_gpu + job.cpus_per_node;
    need.memory_mib = need.gpus * job.memory_per_gpu_mib + job.memory_per_node_mib;
    return need;
}

std::vector<GpuParts> choose_gpus(const std::vector<FreeSpace>& spaces, const Need& need,
                                  const NodeSet& chosen)
{
    std::vector<GpuParts> parts;
    int left = need.gpus_in_all;
    bool is_shared = false;
    chosen.for_each([&](std::size_t node) {
        const FreeSpace& space = spaces[node];
        const int gpus = std::min(left, need.gpus);
        is_shared = is_shared || space.per_gpu > 0;
        parts.push_back(need.shares > 0 ? shares_on(space, need.shares) : whole_on(space, gpus));
        left -= gpus;
    });
    return is_shared ? parts : std::vector<GpuParts>();
}

void change(std::vector<FreeSpace>& spaces, const Need& need, const NodeSet& chosen,
            const std::vector<GpuParts>& parts, int sign)
{
    int left = need.gpus_in_all;
    std::size_t place = 0;
    chosen.for_each([&](std::size_t node) {
        FreeSpace& space = spaces[node];
        const int gpus = std::min(left, need.gpus);
        if (space.per_gpu > 0) {
            sign > 0 ? space.parts += parts[place] : space.parts -= parts[place];
            space.gpus = space.parts.whole(space.per_gpu);
        } else {
            space.gpus += sign * gpus;
        }
        space.cpus += sign * need.cpus;
        space.memory_mib += sign * need.memory_mib;
        left -= gpus;
        ++place;
    });
}

Placer::Placer(const std::vector<Node>& nodes)
    : m_size(nodes.size())
{
    m_weights.reserve(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        m_weights.push_back(nodes[i].weight);
        const auto leaf = static_cast<std::size_t>(nodes[i].leaf);
        if (leaf > m_leaves.size()) {
            m_leaves.resize(leaf);
        }
        if (leaf > 0) {
            m_leaves[leaf - 1].set(i);
        }
    }
}

bool Placer::possible(const Need& need, const NodeSet& allowed,
                      const std::vector<FreeSpace>& spaces) const
{
    int usable = 0;
    for (std::size_t node = 0; node < m_size; ++node) {
        if (allowed.test(node) && fits(need, spaces[node]) && ++usable >= need.nodes) {
            return true;
        }
    }
    return false;
}

NodeSet Placer::choose(const Need& need, const NodeSet& allowed,
                       const std::vector<FreeSpace>& spaces) const
{
    NodeSet chosen;
    NodeSet usable;
    allowed.for_each([&](std::size_t node) {
        if (node < m_size && fits(need, spaces[node])) {
            usable.set(node);
        }
    });
    if (usable.count() < static_cast<std::size_t>(need.nodes)) {
        return chosen;
    }
    if (!m_leaves.empty()) {
        return choose_by_leaf(need, usable, spaces);
    }
    for (int wanted = need.nodes; wanted > 0;) {
        Run best;
        for (std::size_t node = 0; node < m_size;) {
            if (!usable.test(node)) {
                ++node;
                continue;
            }
            Run run{node, node, m_weights[node], 0};
            while (run.last < m_size && usable.test(run.last) &&
                   m_weights[run.last] == run.weight) {
                run.size += size_of(spaces[run.last]);
                ++run.last;
            }
            node = run.last;
            if (best.nodes() == 0 || is_better(run, best, wanted)) {
                best = run;
            }
        }
        if (wanted == 1) {
            chosen.set(need.counted > 0 ? best.first : tightest(best, spaces));
            break;
        }
        for (std::size_t node = best.first; node < best.last && wanted > 0; ++node, --wanted) {
            chosen.set(node);
        }
        for (std::size_t node = best.first; node < best.last; ++node) {
            usable.reset(node);
        }
    }
    return chosen;
}

/// The usable nodes of the lightest weights, up to the weight that makes them enough.
NodeSet Placer::lightest(const Need& need, const NodeSet& usable) const
{
    NodeSet taken;
    for (std::optional<int> weight; taken.count() < static_cast<std::size_t>(need.nodes);) {
        std::optional<int> next;
        for (std::size_t node = 0; node < m_size; ++node) {
            if (usable.test(node) && (!weight || m_weights[node] > *weight)) {
                next = next ? std::min(*next, m_weights[node]) : m_weights[node];
            }
        }
        if (!next) {
            break;
        }
        for (std::size_t node = 0; node < m_size; ++node) {
            if (usable.test(node) && m_weights[node] == *next) {
                taken.set(node);
            }
        }
        weight = next;
    }
    return taken;
}

/// Like topology/tree with two levels: of the leaves with enough usable nodes, the one with the
/// fewest; if there is none, one leaf after another, each time the tightest one that is enough for
/// the rest, else the largest.
NodeSet Placer::choose_by_leaf(const Need& need, const NodeSet& usable,
                               const std::vector<FreeSpace>& spaces) const
{
    const NodeSet allowed = lightest(need, usable);
    std::vector<NodeSet> leaves;
    const NodeSet* fewest = nullptr;
    for (const NodeSet& leaf : m_leaves) {
        leaves.push_back(leaf & allowed);
    }
    for (const NodeSet& leaf : leaves) {
        if (leaf.count() >= static_cast<std::size_t>(need.nodes) &&
            (!fewest || leaf.count() < fewest->count())) {
            fewest = &leaf;
        }
    }
    NodeSet chosen;
    if (fewest) {
        take_from_leaf(need, spaces, *fewest, chosen);
        return chosen;
    }
    while (chosen.count() < static_cast<std::size_t>(need.nodes)) {
        const std::size_t wanted = static_cast<std::size_t>(need.nodes) - chosen.count();
        std::int64_t best_size = 0;
        bool best_is_enough = false;
        NodeSet* best = nullptr;
        for (NodeSet& leaf : leaves) {
            std::int64_t size = 0;
            for (std::size_t node = 0; node < m_size; ++node) {
                size += leaf.test(node) ? counted(need, spaces[node]) : 0;
            }
            const bool enough = leaf.count() >= wanted;
            if (leaf.any() && (!best || (enough && (!best_is_enough || size < best_size)) ||
                               (!enough && size > best_size))) {
                best = &leaf;
                best_size = size;
                best_is_enough = enough;
            }
        }
        if (!best) {
            return {}; // nodes without a leaf
        }
        take_from_leaf(need, spaces, *best, chosen);
        best->reset();
    }
    return chosen;
}

/// Takes nodes of a leaf one after another, each time the tightest one that is enough for the rest,
/// else the largest.
void Placer::take_from_leaf(const Need& need, const std::vector<FreeSpace>& spaces, NodeSet leaf,
                            NodeSet& chosen) const
{
    int left = need.nodes - static_cast<int>(chosen.count());
    for (; left > 0 && leaf.any(); --left) {
        const int rest = left * std::max(need.cpus, need.gpus);
        std::optional<std::size_t> best;
        for (std::size_t node = 0; node < m_size; ++node) {
            if (!leaf.test(node)) {
                continue;
            }
            const int size = counted(need, spaces[node]);
            const int best_size = best ? counted(need, spaces[*best]) : 0;
            if (!best || (size >= rest && (best_size < rest || size < best_size)) ||
                (size < rest && size > best_size)) {
                best = node;
            }
        }
        chosen.set(*best);
        leaf.reset(*best);
    }
}

} // namespace gpuq::sim
