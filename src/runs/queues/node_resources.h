// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "ports/nodes.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Free resources of a cluster's nodes, for simulations that take and release them often. Pure.
namespace gpuq {

class NodeResources {
public:
    using Node = std::uint32_t; ///< index into the inventory

    /// A job's resources on one node; of several models of GPUs, it has several parts.
    struct Part {
        Node node = 0;
        std::int32_t model = 0;
        std::int32_t gpus = 0;
        std::int32_t cpus = 0;
        std::int32_t shares = 0; ///< of GPUs
        std::int64_t memory_mib = 0;
    };

    /// The even share of a request on each of a number of nodes.
    struct Need {
        std::int32_t cpus = 0;
        std::int32_t shares = 0;
        std::int64_t memory_mib = 0;
        std::vector<std::pair<std::int32_t, std::int32_t>> gpus; ///< model (-1: any) and number
        std::int32_t all_gpus = 0;
        bool whole = false; ///< exclusive use of the nodes
    };

    explicit NodeResources(const Inventory& inventory);

    Need need_of(const Job& job, int nodes);
    /// The parts of a job that holds resources.
    std::vector<Part> held_by(const Job& job);

    /// A set of nodes, 64 of them in each word.
    using NodeSet = std::vector<std::uint64_t>;
    /// The nodes with at least so many free GPUs of all models; null: none.
    const NodeSet* with_free_gpus(std::int32_t count) const;

    /// Appends the parts that the need takes of a node; false if the node does not have enough.
    bool fit(Node node, const Need& need, std::vector<Part>& parts) const
    {
        return m_free.nodes[node].gpus >= need.all_gpus && fits(m_free, node, need, parts);
    }
    /// The same if no job held anything.
    bool could_fit(Node node, const Need& need, std::vector<Part>& parts) const
    {
        return fits(m_whole, node, need, parts);
    }

    void take(const Part& part) { change(part, -1); }
    void give(const Part& part) { change(part, 1); }

    /// Sets a node's free resources to those in another object made from the same inventory.
    void copy_node(const NodeResources& from, Node node);

    /// All GPUs that are free. No job with whole GPUs fits if there is none.
    std::int64_t free_gpus() const { return m_free.all_gpus; }

    std::size_t size() const { return m_whole.nodes.size(); }

private:
    struct Amount {
        std::int32_t cpus = 0;
        std::int32_t shares = 0;
        std::int32_t per_gpu = 0; ///< shares of each GPU; 0: not shared
        std::int32_t gpus = 0;    ///< of all models
        std::int64_t memory_mib = 0;
    };
    struct State {
        std::vector<Amount> nodes;
        std::vector<std::int32_t> gpus; ///< of each node, by model
        std::int64_t all_gpus = 0;
    };

    std::int32_t model_index(const std::string& model);
    bool fits(const State& state, Node node, const Need& need, std::vector<Part>& parts) const;
    bool is_idle(const State& state, Node node) const;
    void add_whole(Node node, std::vector<Part>& parts) const;
    void change(const Part& part, int sign);
    void set_gpus(Node node, std::int32_t model, std::int32_t count);

    std::map<std::string, std::int32_t> m_models;
    std::map<std::string, Node> m_names;
    State m_whole;
    State m_free;
    std::vector<NodeSet> m_with_free; ///< by number of free GPUs
};

/// Calls `visit` for the nodes that are in both sets, in order, until it returns true.
template <typename Visit>
bool any_of_both(const NodeResources::NodeSet& one, const NodeResources::NodeSet& other,
                 const Visit& visit)
{
    for (std::size_t word = 0; word < one.size(); ++word) {
        for (std::uint64_t bits = one[word] & other[word]; bits != 0; bits &= bits - 1) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
            if (visit(static_cast<NodeResources::Node>(word * 64 + bit))) {
                return true;
            }
        }
    }
    return false;
}

} // namespace gpuq
