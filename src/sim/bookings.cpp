// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/bookings.h"

#include <algorithm>

namespace gpuq::sim {

Bookings::Bookings(Seconds now, Seconds window, Seconds resolution, const NodeSet& all,
                   Seconds clock)
    : m_resolution(resolution)
    , m_clock(clock)
    , m_stretches{{rounded(now), std::max(rounded(now + window), rounded(now) + resolution), all}}
{
}

Bookings::Gap Bookings::gap(Seconds start, Seconds end, const NodeSet& wanted) const
{
    Gap result{wanted, std::nullopt};
    for (std::size_t i = 0; i < m_stretches.size(); ++i) {
        const Stretch& stretch = m_stretches[i];
        if (stretch.end <= start) {
            continue;
        }
        // A later attempt is useful once nodes become free that this stretch lacks.
        if (!result.later && i + 1 < m_stretches.size() &&
            !contains(result.nodes & stretch.free, wanted & m_stretches[i + 1].free)) {
            result.later = stretch.end;
        }
        if (stretch.begin > end) {
            break;
        }
        result.nodes &= stretch.free;
    }
    return result;
}

bool Bookings::overlaps(Seconds start, Seconds end, const NodeSet& nodes) const
{
    return std::any_of(m_stretches.begin(), m_stretches.end(), [&](const Stretch& stretch) {
        return stretch.end > start && stretch.begin < end && !contains(stretch.free, nodes);
    });
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
