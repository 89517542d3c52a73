// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <bitset>
#include <vector>

namespace gpuq::sim {

using NodeSet = std::bitset<k_max_nodes>;

inline NodeSet node_set(const std::vector<int>& nodes)
{
    NodeSet set;
    for (const int node : nodes) {
        set.set(static_cast<std::size_t>(node));
    }
    return set;
}

/// Whether every node of `part` is in `whole`.
inline bool contains(const NodeSet& whole, const NodeSet& part)
{
    return (part & ~whole).none();
}

} // namespace gpuq::sim
