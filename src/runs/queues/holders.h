// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/queues/node_resources.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace gpuq {

/// The jobs that hold resources in a simulation, and when nodes have room by the time limits of
/// these jobs. Pure.
class Holders {
    using Node = NodeResources::Node;
    using Need = NodeResources::Need;
    using Part = NodeResources::Part;
    /// When a node has room, as of a number of changes of its jobs.
    struct Room {
        std::uint64_t changes = 0;
        double from = 0;
    };
    /// The rooms for one request; kept, since the same jobs head the line for many passes.
    struct Table {
        std::optional<std::size_t> request;
        std::vector<Room> by_node;
    };

public:
    static constexpr double k_never = std::numeric_limits<double>::infinity();

    explicit Holders(const NodeResources& nodes);

    /// Adds a job with a time limit that ends at `limit_end`. Returns its number.
    std::uint32_t add(const std::vector<Part>& parts, double limit_end);
    /// Removes it, and returns its resources to the nodes.
    void release(std::uint32_t number, NodeResources& nodes);

    /// Valid until the next call of rooms_for.
    class Rooms {
    public:
        Rooms(Holders& holders, Table& table, const Need& need);
        /// When the node has room; k_never: by none of the limits; -k_never: now.
        double from(Node node, const NodeResources& nodes) const;

    private:
        Holders& m_holders;
        Table& m_table;
        const Need& m_need;
    };
    /// For the request with this number, which always has the same need.
    Rooms rooms_for(std::size_t request, const Need& need);

private:
    struct Holder {
        std::uint32_t first = 0; ///< of its parts
        std::uint32_t count = 0;
        double limit_end = 0;
    };

    double room_from(Node node, const Need& need, const NodeResources& nodes);

    NodeResources m_scratch;
    std::vector<Part> m_parts;
    std::vector<Holder> m_holders;
    std::vector<std::vector<std::uint32_t>> m_on_node;
    std::vector<std::uint64_t> m_changes; ///< by node
    std::array<Table, 16> m_tables;
    std::size_t m_replaced = 0;
    // Kept for their memory.
    std::vector<Part> m_unused;
    std::vector<std::uint32_t> m_here;
};

} // namespace gpuq
