// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/node_set.h"

#include <optional>
#include <vector>

namespace gpuq::sim {

/// Backfill's map of whole nodes over time: which of them no waiting job has booked.
class Bookings {
public:
    /// Moments are cut to multiples of `resolution` on a clock that shows `clock` at zero.
    Bookings(Seconds now, Seconds window, Seconds resolution, const NodeSet& all,
             Seconds clock = Seconds{0});

    /// What is free throughout a stretch, and when the next try is worth while.
    struct Gap {
        NodeSet nodes;
        std::optional<Seconds> later; ///< first moment after which other nodes of `wanted` are free
    };
    Gap gap(Seconds start, Seconds end, const NodeSet& wanted) const;

    /// Whether some of `nodes` is booked by others between the two.
    bool overlaps(Seconds start, Seconds end, const NodeSet& nodes) const;

    /// Books `nodes`; both moments are cut to the resolution.
    void book(Seconds start, Seconds end, const NodeSet& nodes);

    Seconds rounded(Seconds moment) const { return moment - (moment + m_clock) % m_resolution; }

private:
    struct Stretch {
        Seconds begin;
        Seconds end;
        NodeSet free;
    };
    std::size_t split(Seconds moment);

    Seconds m_resolution;
    Seconds m_clock;
    std::vector<Stretch> m_stretches;
};

} // namespace gpuq::sim
