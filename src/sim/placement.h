// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/job.h"
#include "sim/machine.h"
#include "sim/node_set.h"

#include <optional>
#include <vector>

namespace gpuq::sim {

/// What a node can still give. What is not counted is as good as endless.
struct Room {
    int gpus = 0;
    int cpus = 0;
    int memory_mib = 0;
};

/// What a job takes of each of its nodes.
struct Need {
    int nodes = 1;
    int gpus = 1;        ///< of each node
    int gpus_in_all = 1; ///< the last node gives what is left over
    int cpus = 0;
    int memory_mib = 0;
    int counted = 0;   ///< CPUs of a node that are compared, at most; 0: all that are free
    int min_nodes = 0; ///< that its priority counts; 0: `nodes`

    bool operator==(const Need&) const = default;
};

/// What each node has when nothing runs.
std::vector<Room> empty_rooms(const std::vector<Node>& nodes);

/// How `job` is cut to fit nodes of `gpus_per_node` GPUs at most; nothing when it can not be.
std::optional<Need> need_of(const Job& job, int gpus_per_node);

inline bool fits(const Need& need, const Room& room)
{
    return room.gpus >= need.gpus && room.cpus >= need.cpus && room.memory_mib >= need.memory_mib;
}

/// Gives or takes back what `need` takes of the nodes in `chosen`; `sign` is -1 or 1.
void change(std::vector<Room>& rooms, const Need& need, const NodeSet& chosen, int sign);

/// The nodes that select/cons_tres takes: of the runs of neighbouring usable nodes of one weight,
/// the lightest, then the tightest; in it the tightest node, or the first ones. Empty: not enough.
class Placer {
public:
    explicit Placer(const std::vector<Node>& nodes);

    NodeSet choose(const Need& need, const NodeSet& allowed, const std::vector<Room>& rooms) const;
    bool possible(const Need& need, const NodeSet& allowed, const std::vector<Room>& rooms) const;

private:
    NodeSet choose_by_leaf(const Need& need, const NodeSet& usable,
                           const std::vector<Room>& rooms) const;
    void take_from_leaf(const Need& need, const std::vector<Room>& rooms, NodeSet leaf,
                        NodeSet& chosen) const;
    NodeSet lightest(const Need& need, const NodeSet& usable) const;

    std::vector<int> m_weights;
    std::vector<NodeSet> m_leaves; ///< none: no topology
    std::size_t m_size;
};

} // namespace gpuq::sim
