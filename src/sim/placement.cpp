// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/placement.h"

#include <algorithm>
#include <limits>

namespace gpuq::sim {
namespace {

constexpr int k_endless = std::numeric_limits<int>::max() / 4;

/// Neighbouring usable nodes of one weight: [first, last).
struct Run {
    std::size_t first = 0;
    std::size_t last = 0;
    int weight = 0;
    std::int64_t size = 0; ///< what they can give together

    int nodes() const { return static_cast<int>(last - first); }
};

/// Slurm compares CPUs; where they are not counted, GPUs stand for them.
int size_of(const Room& room)
{
    return room.cpus >= k_endless / 2 ? room.gpus : room.cpus;
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

std::size_t tightest(const Run& run, const std::vector<Room>& rooms)
{
    std::size_t best = run.first;
    for (std::size_t node = run.first + 1; node < run.last; ++node) {
        if (size_of(rooms[node]) < size_of(rooms[best])) {
            best = node;
        }
    }
    return best;
}

} // namespace

std::vector<Room> empty_rooms(const std::vector<Node>& nodes)
{
    std::vector<Room> rooms;
    rooms.reserve(nodes.size());
    for (const Node& node : nodes) {
        rooms.push_back({node.gpus, node.cpus > 0 ? node.cpus : k_endless,
                         node.memory_mib > 0 ? node.memory_mib : k_endless});
    }
    return rooms;
}

std::optional<Need> need_of(const Job& job, int gpus_per_node)
{
    if (job.gpus < 1 || gpus_per_node < 1 || job.nodes > job.gpus) {
        return std::nullopt;
    }
    Need need;
    need.gpus_in_all = job.gpus;
    need.nodes = job.nodes > 0 ? job.nodes : (job.gpus + gpus_per_node - 1) / gpus_per_node;
    need.gpus = (job.gpus + need.nodes - 1) / need.nodes;
    if (need.gpus > gpus_per_node || need.gpus * (need.nodes - 1) >= job.gpus) {
        return std::nullopt;
    }
    need.cpus = need.gpus * job.cpus_per_gpu;
    need.memory_mib = need.gpus * job.memory_per_gpu_mib;
    return need;
}

void change(std::vector<Room>& rooms, const Need& need, const NodeSet& chosen, int sign)
{
    int left = need.gpus_in_all;
    for (std::size_t node = 0; node < rooms.size() && left > 0; ++node) {
        if (!chosen.test(node)) {
            continue;
        }
        const int gpus = std::min(left, need.gpus);
        rooms[node].gpus += sign * gpus;
        rooms[node].cpus += sign * need.cpus;
        rooms[node].memory_mib += sign * need.memory_mib;
        left -= gpus;
    }
}

Placer::Placer(const std::vector<Node>& nodes)
    : m_size(nodes.size())
{
    m_weights.reserve(nodes.size());
    for (const Node& node : nodes) {
        m_weights.push_back(node.weight);
    }
}

bool Placer::possible(const Need& need, const NodeSet& allowed,
                      const std::vector<Room>& rooms) const
{
    int usable = 0;
    for (std::size_t node = 0; node < m_size; ++node) {
        if (allowed.test(node) && fits(need, rooms[node]) && ++usable >= need.nodes) {
            return true;
        }
    }
    return false;
}

NodeSet Placer::choose(const Need& need, const NodeSet& allowed,
                       const std::vector<Room>& rooms) const
{
    NodeSet chosen;
    if (!possible(need, allowed, rooms)) {
        return chosen;
    }
    NodeSet usable = allowed;
    for (std::size_t node = 0; node < m_size; ++node) {
        usable.set(node, allowed.test(node) && fits(need, rooms[node]));
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
                run.size += size_of(rooms[run.last]);
                ++run.last;
            }
            node = run.last;
            if (best.nodes() == 0 || is_better(run, best, wanted)) {
                best = run;
            }
        }
        if (wanted == 1) {
            chosen.set(tightest(best, rooms));
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

} // namespace gpuq::sim
