// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/departures.h"

#include <algorithm>

namespace gpuq::sim {
namespace {

Departure first_fit(const Need& need, FreeSpace space,
                    const std::vector<Departures::Returned>& returned)
{
    if (fits(need, space)) {
        return k_departed;
    }
    for (const auto& [departure, more] : returned) {
        space += more;
        if (fits(need, space)) {
            return departure;
        }
    }
    return k_no_departure;
}

} // namespace

Departures::Departures(std::size_t nodes)
    : m_returned(nodes)
    , m_versions(nodes, 1)
{
}

void Departures::add(const Departure& departure, const Need& need, const NodeSet& nodes,
                     const std::vector<GpuParts>& parts)
{
    ++m_version;
    int left = need.gpus_in_all;
    std::size_t number = 0;
    nodes.for_each([&](std::size_t node) {
        m_versions[node] = m_version;
        auto& list = m_returned[node];
        const auto place =
            std::upper_bound(list.begin(), list.end(), departure,
                             [](const Departure& a, const Returned& b) { return a < b.departure; });
        const int gpus = std::min(left, need.gpus); // as change() does
        const GpuParts held = parts.empty() ? GpuParts() : parts[number];
        list.insert(place, {departure, {gpus, need.cpus, need.memory_mib, 0, held}});
        left -= gpus;
        ++number;
    });
}

void Departures::remove(const Departure& departure, const NodeSet& nodes)
{
    ++m_version;
    nodes.for_each([&](std::size_t node) {
        m_versions[node] = m_version;
        std::erase_if(m_returned[node],
                      [&](const Returned& other) { return other.departure == departure; });
    });
}

void Departures::return_until(const Departure& last, std::size_t node, FreeSpace& space) const
{
    for (const auto& [departure, returned] : m_returned[node]) {
        if (last < departure) {
            break;
        }
        space += returned;
    }
}

FitTimes::FitTimes(const Need& need, const NodeSet& nodes)
    : m_need(need)
{
    nodes.for_each([&](std::size_t node) { m_nodes.push_back({k_no_departure, 0, node}); });
}

void FitTimes::update(const std::vector<FreeSpace>& spaces, const Departures& departures)
{
    if (m_version == departures.version()) {
        return;
    }
    m_version = departures.version();
    for (OnNode& on : m_nodes) {
        if (on.version != departures.version(on.node)) {
            on.version = departures.version(on.node);
            on.fits = first_fit(m_need, spaces[on.node], departures.on(on.node));
        }
    }
    // Few nodes have changed: insertion sort.
    for (auto next = m_nodes.begin(); next != m_nodes.end(); ++next) {
        const auto place = [&] {
            auto before = next;
            while (before != m_nodes.begin() && next->fits < std::prev(before)->fits) {
                --before;
            }
            return before;
        }();
        std::rotate(place, next, std::next(next));
    }
}

Departure FitTimes::among(const NodeSet& allowed, const std::vector<FreeSpace>& spaces,
                          const Departures& departures)
{
    update(spaces, departures);
    int found = 0;
    for (const OnNode& on : m_nodes) {
        if (allowed.test(on.node) && ++found >= m_need.nodes) {
            return on.fits;
        }
    }
    return k_no_departure;
}

} // namespace gpuq::sim
