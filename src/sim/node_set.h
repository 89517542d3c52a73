// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuq::sim {

/// Nodes of a machine, by index: like std::bitset, but its chunks can be read, so that questions
/// about a small machine need not look at all of them.
class NodeSet {
public:
    static constexpr std::size_t k_bits = 64;
    static constexpr std::size_t k_chunks = k_max_nodes / k_bits;

    static constexpr std::size_t size() { return k_max_nodes; }
    /// The number of chunks that the sets of a machine use.
    static constexpr std::size_t chunks_of(std::size_t nodes)
    {
        return (nodes + k_bits - 1) / k_bits;
    }
    std::uint64_t chunk(std::size_t index) const { return m_chunks[index]; }
    /// Intersection, for sets whose first `chunks` are all that they use.
    void keep(const NodeSet& other, std::size_t chunks)
    {
        for (std::size_t i = 0; i < chunks; ++i) {
            m_chunks[i] &= other.m_chunks[i];
        }
    }

    bool test(std::size_t node) const
    {
        return (m_chunks[node / k_bits] >> node % k_bits & 1) != 0;
    }
    void set(std::size_t node) { m_chunks[node / k_bits] |= std::uint64_t{1} << node % k_bits; }
    void reset(std::size_t node)
    {
        m_chunks[node / k_bits] &= ~(std::uint64_t{1} << node % k_bits);
    }
    void reset() { m_chunks = {}; }
    static NodeSet all() { return ~NodeSet{}; }

    bool any() const { return *this != NodeSet{}; }
    bool none() const { return !any(); }
    std::size_t count() const
    {
        std::size_t sum = 0;
        for (const std::uint64_t chunk : m_chunks) {
            sum += static_cast<std::size_t>(std::popcount(chunk));
        }
        return sum;
    }

    /// Calls `apply` for each node, in order.
    template <typename Apply>
    void for_each(Apply apply) const
    {
        for (std::size_t i = 0; i < k_chunks; ++i) {
            for (std::uint64_t rest = m_chunks[i]; rest != 0; rest &= rest - 1) {
                apply(i * k_bits + static_cast<std::size_t>(std::countr_zero(rest)));
            }
        }
    }

    NodeSet& operator&=(const NodeSet& other)
    {
        for (std::size_t i = 0; i < k_chunks; ++i) {
            m_chunks[i] &= other.m_chunks[i];
        }
        return *this;
    }
    friend NodeSet operator&(NodeSet a, const NodeSet& b) { return a &= b; }
    friend NodeSet operator~(NodeSet set)
    {
        for (std::uint64_t& chunk : set.m_chunks) {
            chunk = ~chunk;
        }
        return set;
    }
    bool operator==(const NodeSet&) const = default;

private:
    std::array<std::uint64_t, k_chunks> m_chunks{};
};

inline NodeSet node_set(const std::vector<int>& nodes)
{
    NodeSet set;
    for (const int node : nodes) {
        set.set(static_cast<std::size_t>(node));
    }
    return set;
}

/// The only node of a set; -1 if it has none or several.
inline int only_node(const NodeSet& nodes)
{
    int only = -1;
    if (nodes.count() == 1) {
        nodes.for_each([&](std::size_t node) { only = static_cast<int>(node); });
    }
    return only;
}

/// Whether every node of `part` is in `whole`.
inline bool contains(const NodeSet& whole, const NodeSet& part)
{
    return (part & ~whole).none();
}

} // namespace gpuq::sim
