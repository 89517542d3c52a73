// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/placement.h"

#include <cstdint>
#include <tuple>
#include <vector>

namespace gpuq::sim {

/// A position in the sequence of running links, by the time at which each must end.
struct Departure {
    Seconds ends_by{0};
    std::uint32_t link = 0;

    bool operator==(const Departure&) const = default;
    bool operator<(const Departure& other) const
    {
        return std::tie(ends_by, link) < std::tie(other.ends_by, other.link);
    }
};

inline constexpr Departure k_departed{Seconds::min(), 0}; ///< before all running links
inline constexpr Departure k_no_departure{Seconds::max(), 0};

/// The resources that running links return, node by node, and when a job fits on a node as a
/// result. Kept up to date at each start and end, so that a question costs the same however many
/// links run elsewhere.
class Departures {
public:
    explicit Departures(std::size_t nodes);

    /// `parts`: its GPUs on shared nodes, from choose_gpus.
    void add(const Departure& departure, const Need& need, const NodeSet& nodes,
             const std::vector<GpuParts>& parts);
    void remove(const Departure& departure, const NodeSet& nodes);

    struct Returned {
        Departure departure;
        FreeSpace space;
    };
    /// The resources that return on a node, in order.
    const std::vector<Returned>& on(std::size_t node) const { return m_returned[node]; }
    /// Changes with each add() and remove().
    std::uint64_t version() const { return m_version; }
    /// The last version() that concerned the node.
    std::uint64_t version(std::size_t node) const { return m_versions[node]; }

    /// Adds the resources that return on the node until `last` to `space`, which is free now.
    void return_until(const Departure& last, std::size_t node, FreeSpace& space) const;

private:
    std::vector<std::vector<Returned>> m_returned; ///< by node
    std::vector<std::uint64_t> m_versions;         ///< by node
    std::uint64_t m_version = 1;
};

/// When jobs of one shape fit on each of its nodes.
class FitTimes {
public:
    FitTimes(const Need& need, const NodeSet& nodes);

    /// The first departure after which the job fits on enough nodes of `allowed`; k_departed if it
    /// fits now.
    Departure among(const NodeSet& allowed, const std::vector<FreeSpace>& spaces,
                    const Departures& departures);

private:
    struct OnNode {
        Departure fits;
        std::uint64_t version = 0; ///< of the node when `fits` was computed
        std::size_t node = 0;
    };
    void update(const std::vector<FreeSpace>& spaces, const Departures& departures);

    Need m_need;
    std::vector<OnNode> m_nodes; ///< the earliest first
    std::uint64_t m_version = 0;
};

} // namespace gpuq::sim
