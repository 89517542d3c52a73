// SPDX-License-Identifier: GPL-2.0-or-later
// Events of the machine: other hours, and failures of nodes.
#include "sim/world.h"

#include "sim/at.h"

#include <algorithm>

namespace gpuq::sim {

/// Whether an entry may start at these hours.
bool World::is_open(const Entry& entry) const
{
    const Partition& partition = machine.partitions[at(entry.partition)];
    return !partition.closed && links[entry.link].claim.limit <= partition.max_time;
}

/// Reduces the time limit of a running link, so that it ends at `end`. Returns whether it leaves
/// earlier as a result.
bool World::shorten(std::uint32_t index, Seconds end)
{
    Link& link = links[index];
    const Departure before{link.ends_by, index};
    departures.remove(before, link.nodes);
    running.erase(place_of(before));
    limits.ended(link.claim, link.partition, link.start);
    link.claim.limit = end - link.start;
    link.ends_by = end;
    limits.started(link.claim, link.partition, link.start);
    const Departure departure{link.ends_by, index};
    departures.add(departure, link.need, link.nodes, link.parts);
    running.insert(place_of(departure), {departure, only_node(link.nodes)});

    const bool was_cut = link.cut;
    const Seconds finish = finish_of(link);
    if (finish >= link.finish) {
        link.cut = was_cut; // it is done before, or was notified to leave
        return false;
    }
    link.finish = finish;
    return true;
}

std::vector<std::uint32_t> World::change_hours(const Hours& hours)
{
    std::vector<std::pair<std::uint32_t, Seconds>> ends; // of running links, new ones
    for (const Running& each : running) {
        const std::size_t partition = at(links[each.departure.link].partition);
        const Partition& next = hours.partitions[partition];
        const Seconds end = now + next.notice;
        if (next.closed && !machine.partitions[partition].closed && each.departure.ends_by > end) {
            ends.emplace_back(each.departure.link, end);
        }
    }
    machine.partitions = hours.partitions;
    machine.qos = hours.qos;
    std::vector<std::uint32_t> sooner;
    for (const auto& [link, end] : ends) {
        if (shorten(link, end)) {
            sooner.push_back(link);
        }
    }
    std::vector<Entry> all = std::exchange(held, {});
    if (!queue.empty()) {
        queue.remove(queue.size() - 1, [&](const Entry& entry) {
            const bool stays = is_open(entry);
            if (!stays) {
                all.push_back(entry);
            }
            return !stays;
        });
    }
    for (Entry& entry : all) {
        // Entries of links that have started in another partition are not kept.
        if (links.is_over(entry.link) || links[entry.link].state != State::pending) {
            continue;
        }
        if (!is_open(entry)) {
            held.push_back(entry);
            continue;
        }
        entry.aged = false;
        entry.priority = first_priority(entry);
        queue.insert(entry);
        m_priorities.some_age = true;
    }
    return sooner;
}

std::vector<std::uint32_t> World::fail(int node)
{
    std::vector<std::uint32_t> lost;
    ++m_outages[at(node)];
    m_up.reset(at(node));
    for (const Running& each : running) {
        Link& link = links[each.departure.link];
        if (link.nodes.test(at(node)) && link.finish > now) {
            link.finish = now;
            link.cut = true;
            link.failed = true;
            lost.push_back(each.departure.link);
        }
    }
    return lost;
}

void World::restore(int node)
{
    if (--m_outages[at(node)] == 0) {
        m_up.set(at(node));
    }
}

} // namespace gpuq::sim
