// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/gpu_parts.h"
#include "sim/job.h"
#include "sim/machine.h"
#include "sim/node_set.h"

#include <optional>
#include <vector>

namespace gpuq::sim {

/// The free resources of a node. Resources that are not counted are practically unlimited.
struct FreeSpace {
    int gpus = 0; ///< without a share in use
    int cpus = 0;
    int memory_mib = 0;
    int per_gpu = 0; ///< of a node with shared GPUs: shares of each
    GpuParts parts{};
};

/// The resources that a job takes on each of its nodes.
struct Need {
    int nodes = 1;
    int gpus = 1;        ///< on each node
    int gpus_in_all = 1; ///< the last node provides the remainder
    int cpus = 0;
    int memory_mib = 0;
    int counted = 0;   ///< maximum of a node's free CPUs that counts in comparisons; 0: all
    int min_nodes = 0; ///< for the priority; 0: `nodes`
    int shares = 0;    ///< of one GPU; then the numbers of GPUs are 0

    bool operator==(const Need&) const = default;
};

/// The resources of each node when no job runs.
std::vector<FreeSpace> empty_spaces(const std::vector<Node>& nodes);

/// How `job` is divided over nodes with at most `gpus_per_node` GPUs; nullopt if that is
/// impossible.
std::optional<Need> need_of(const Job& job, int gpus_per_node);

inline bool fits(const Need& need, const FreeSpace& space)
{
    return space.gpus >= need.gpus && space.cpus >= need.cpus &&
           space.memory_mib >= need.memory_mib &&
           (need.shares == 0 || space.parts.most() >= need.shares);
}

inline FreeSpace& operator+=(FreeSpace& space, const FreeSpace& more)
{
    if (space.per_gpu > 0) {
        space.parts += more.parts;
        space.gpus = space.parts.whole(space.per_gpu);
    } else {
        space.gpus += more.gpus;
    }
    space.cpus += more.cpus;
    space.memory_mib += more.memory_mib;
    return space;
}

/// The GPUs that a job gets on each of the nodes in `chosen`, in order, if the GPUs of any are
/// shared; else empty. As Slurm does, shares are taken from the first GPU that has enough, even if
/// another one is shared already.
std::vector<GpuParts> choose_gpus(const std::vector<FreeSpace>& spaces, const Need& need,
                                  const NodeSet& chosen);

/// Takes the resources of `need` from the nodes in `chosen` if `sign` is -1, returns them if it is
/// 1. `parts`: its GPUs, from choose_gpus.
void change(std::vector<FreeSpace>& spaces, const Need& need, const NodeSet& chosen,
            const std::vector<GpuParts>& parts, int sign);

/// Chooses nodes like select/cons_tres: of the sequences of adjacent usable nodes of one weight,
/// the lightest, then the tightest; in it the tightest node, or the first ones. Empty: not enough
/// nodes.
class Placer {
public:
    explicit Placer(const std::vector<Node>& nodes);

    NodeSet choose(const Need& need, const NodeSet& allowed,
                   const std::vector<FreeSpace>& spaces) const;
    bool possible(const Need& need, const NodeSet& allowed,
                  const std::vector<FreeSpace>& spaces) const;

private:
    NodeSet choose_by_leaf(const Need& need, const NodeSet& usable,
                           const std::vector<FreeSpace>& spaces) const;
    void take_from_leaf(const Need& need, const std::vector<FreeSpace>& spaces, NodeSet leaf,
                        NodeSet& chosen) const;
    NodeSet lightest(const Need& need, const NodeSet& usable) const;

    std::vector<int> m_weights;
    std::vector<NodeSet> m_leaves; ///< empty: no topology
    std::size_t m_size;
};

} // namespace gpuq::sim
