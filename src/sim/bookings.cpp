// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/bookings.h"

#include <algorithm>

namespace gpuq::sim {

Bookings::Bookings(Seconds now, Seconds window, Seconds resolution, std::size_t nodes,
                   Seconds clock)
    : m_resolution(resolution)
    , m_clock(clock)
    , m_chunks(NodeSet::chunks_of(nodes))
    , m_stretches{{rounded(now), std::max(rounded(now + window), rounded(now) + resolution),
                   NodeSet::all()}}
{
}

std::vector<Bookings::Stretch>::const_iterator Bookings::first_after(Seconds moment) const
{
    return std::partition_point(m_stretches.begin(), m_stretches.end(),
                                [&](const Stretch& stretch) { return stretch.end <= moment; });
}

/// Whether some of the nodes wanted are free in `next`, but not in `nodes` and `now`.
bool Bookings::becomes_free(const NodeSet& nodes, const Stretch& now, const NodeSet& wanted,
                            const Stretch& next) const
{
    for (std::size_t i = 0; i < m_chunks; ++i) {
        if ((wanted.chunk(i) & next.free.chunk(i) & ~(nodes.chunk(i) & now.free.chunk(i))) != 0) {
            return true;
        }
    }
    return false;
}

Bookings::Gap Bookings::gap(Seconds start, Seconds end, const NodeSet& wanted) const
{
    Gap result{wanted, wanted, std::nullopt};
    for (auto stretch = first_after(start); stretch != m_stretches.end(); ++stretch) {
        // A later attempt is useful once nodes become free that this stretch lacks.
        const auto next = std::next(stretch);
        if (!result.later && next != m_stretches.end() &&
            becomes_free(result.nodes, *stretch, wanted, *next)) {
            result.later = stretch->end;
        }
        if (stretch->begin > end) {
            result.to_end = next == m_stretches.end();
            break;
        }
        result.nodes.keep(stretch->free, m_chunks);
        if (stretch->begin <= end - m_resolution) {
            result.nearly = result.nodes;
        }
    }
    return result;
}

bool Bookings::overlaps(Seconds start, Seconds end, const NodeSet& nodes) const
{
    for (auto stretch = first_after(start); stretch != m_stretches.end() && stretch->begin < end;
         ++stretch) {
        if (!contains(stretch->free, nodes)) {
            return true;
        }
    }
    return false;
}

/// The index of the first stretch that begins at `moment` or later; splits a stretch if necessary.
std::size_t Bookings::split(Seconds moment)
{
    std::size_t i = 0;
    while (i < m_stretches.size() && m_stretches[i].end <= moment) {
        ++i;
    }
    if (i == m_stretches.size() || m_stretches[i].begin >= moment) {
        return i;
    }
    Stretch second = m_stretches[i];
    second.begin = moment;
    m_stretches[i].end = moment;
    m_stretches.insert(m_stretches.begin() + static_cast<std::ptrdiff_t>(i) + 1, second);
    return i + 1;
}

void Bookings::book(Seconds start, Seconds end, const NodeSet& nodes)
{
    const Seconds begin = std::max(rounded(start), m_stretches.front().begin);
    const Seconds until = std::max(rounded(end), begin + m_resolution);
    const std::size_t first = split(begin);
    const std::size_t last = split(until);
    for (std::size_t i = first; i < last; ++i) {
        m_stretches[i].free &= ~nodes;
    }
}

} // namespace gpuq::sim
