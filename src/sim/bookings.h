// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/node_set.h"

#include <optional>
#include <vector>

namespace gpuq::sim {

/// Backfill's map of whole nodes over time: which nodes are not booked for a pending job.
class Bookings {
public:
    /// Times are truncated to multiples of `resolution`, on a clock that shows `clock` at time
    /// zero.
    Bookings(Seconds now, Seconds window, Seconds resolution, std::size_t nodes,
             Seconds clock = Seconds{0});

    /// The nodes that are free during an entire period, and when to try again.
    struct Gap {
        NodeSet nodes;
        NodeSet nearly;               ///< free until a resolution before the end, at least
        std::optional<Seconds> later; ///< first time after which other nodes of `wanted` are free
        bool to_end = true; ///< later bookings than those considered need not be, for `later`
    };
    Gap gap(Seconds start, Seconds end, const NodeSet& wanted) const;

    /// Whether any of `nodes` is booked between the two times.
    bool overlaps(Seconds start, Seconds end, const NodeSet& nodes) const;

    /// Books `nodes`; both times are truncated to the resolution.
    void book(Seconds start, Seconds end, const NodeSet& nodes);

    Seconds rounded(Seconds moment) const { return moment - (moment + m_clock) % m_resolution; }

private:
    struct Stretch {
        Seconds begin;
        Seconds end;
        NodeSet free;
    };
    std::vector<Stretch>::const_iterator first_after(Seconds moment) const;
    std::size_t split(Seconds moment);

    bool becomes_free(const NodeSet& nodes, const Stretch& now, const NodeSet& wanted,
                      const Stretch& next) const;

    Seconds m_resolution;
    Seconds m_clock;
    std::size_t m_chunks; ///< that the sets use
    std::vector<Stretch> m_stretches;
};

} // namespace gpuq::sim
