// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/schedulers.h"

#include <algorithm>
#include <tuple>

namespace gpuq::sim {
namespace {

const Partition& partition_of(const World& world, std::uint32_t link)
{
    return world.machine.partitions[static_cast<std::size_t>(world.links[link].partition)];
}

bool may_be_evicted(const World& world, std::uint32_t link, int tier)
{
    const Partition& partition = partition_of(world, link);
    return partition.preempt != Preempt::off && partition.tier < tier &&
           world.links[link].start + world.machine.settings.timing.preempt_exempt <= world.now;
}

/// Jobs in the order in which they are preempted: those already notified, the lowest tier, the
/// youngest.
std::vector<std::uint32_t> candidates(const World& world, int tier, const NodeSet& allowed)
{
    std::vector<std::uint32_t> result;
    for (const Running& each : world.running) {
        const std::uint32_t link = each.departure.link;
        if (may_be_evicted(world, link, tier) && (world.links[link].nodes & allowed).any()) {
            result.push_back(link);
        }
    }
    const auto key = [&](std::uint32_t link) {
        return std::make_tuple(!world.links[link].preempted, partition_of(world, link).tier,
                               -world.links[link].start, link);
    };
    std::sort(result.begin(), result.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return result;
}

} // namespace

std::vector<std::uint32_t> victims(const World& world, const Entry& entry, const NodeSet& allowed,
                                   NodeSet& nodes)
{
    nodes.reset();
    const std::vector<std::uint32_t> guests = candidates(world, entry.tier, allowed);
    if (guests.empty()) {
        return {};
    }
    const Need& need = world.shapes[entry.shape].need;
    std::vector<FreeSpace> spaces = world.spaces;
    std::vector<std::uint32_t> leaving;
    for (const std::uint32_t link : guests) {
        const Link& guest = world.links[link];
        change(spaces, guest.need, guest.nodes, guest.parts, 1);
        leaving.push_back(link);
        nodes = world.placer.choose(need, allowed, spaces);
        if (nodes.any()) {
            break;
        }
    }
    if (nodes.none()) {
        return {};
    }
    // Preempt no job unnecessarily: a job stays if the nodes suffice without its resources; the
    // first candidates are tested first.
    std::erase_if(leaving, [&](std::uint32_t link) {
        const Link& other = world.links[link];
        change(spaces, other.need, other.nodes, other.parts, -1);
        const bool needed = !world.placer.possible(need, nodes, spaces);
        if (needed) {
            change(spaces, other.need, other.nodes, other.parts, 1);
        }
        return !needed;
    });
    return leaving;
}

NodeSet evictable_nodes(const World& world, const Entry& entry)
{
    const Shape& shape = world.shapes[entry.shape];
    NodeSet result;
    shape.nodes.for_each([&](std::size_t node) {
        FreeSpace space = world.spaces[node];
        for (const auto& [departure, returned] : world.departures.on(node)) {
            if (may_be_evicted(world, departure.link, entry.tier)) {
                space += returned;
            }
        }
        if (fits(shape.need, space)) {
            result.set(node);
        }
    });
    return result;
}

std::vector<std::uint32_t> evict(World& world, const std::vector<std::uint32_t>& links)
{
    constexpr Seconds to_clean_up{2}; // measured: nodes are free KillWait plus this later
    const Timing& timing = world.machine.settings.timing;
    std::vector<std::uint32_t> notified;
    for (const std::uint32_t index : links) {
        Link& link = world.links[index];
        if (link.preempted) {
            continue;
        }
        const Seconds grace = partition_of(world, index).grace;
        const Seconds killed =
            grace > Seconds{0} ? world.next_check(world.now + grace) : world.now + Seconds{1};
        link.preempted = true;
        const Seconds gone = killed + timing.kill_wait + to_clean_up;
        if (gone < link.finish) {
            link.finish = gone;
            link.cut = true;
            notified.push_back(index);
        }
    }
    return notified;
}

} // namespace gpuq::sim
