// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/schedulers.h"

namespace gpuq::sim {
namespace {

/// The partitions that a pass has closed so far.
struct OpenPartitions {
    std::vector<bool> shut; ///< by partition
    std::size_t open;       ///< number of partitions not closed
    NodeSet nodes;          ///< not in any closed partition

    explicit OpenPartitions(const World& world)
        : shut(world.machine.partitions.size(), false)
        , open(shut.size())
        , nodes(NodeSet::all())
    {
    }

    void close(const World& world, int partition)
    {
        const auto index = static_cast<std::size_t>(partition);
        if (!shut[index]) {
            shut[index] = true;
            --open;
            nodes &= ~world.partition_nodes[index];
        }
    }

    /// The last place, `place` or behind it, whose entry certainly is in a closed partition: all of
    /// a tier are skipped at once.
    std::size_t skip(const World& world, std::size_t place) const
    {
        const int tier = world.queue[place].tier;
        for (std::size_t i = 0; i < shut.size(); ++i) {
            if (!shut[i] && world.machine.partitions[i].tier == tier) {
                return place;
            }
        }
        return world.queue.end_of_tier(place, tier) - 1;
    }
};

/// Starts the entry or preempts jobs for it. Returns whether its partition stays open.
bool try_entry(World& world, const Entry& entry, const OpenPartitions& open_partitions,
               Passed& passed)
{
    const Shape& shape = world.shapes[entry.shape];
    const Link& link = world.links[entry.link];
    const NodeSet open = world.open_nodes(shape, world.now, link.claim.limit);
    if (open != shape.nodes &&
        (!open.any() || open.count() < static_cast<std::size_t>(shape.need.nodes))) {
        return true; // reserved: skipped, without blocking later jobs
    }
    const NodeSet allowed = open & open_partitions.nodes;
    NodeSet nodes = world.placer.choose(shape.need, allowed, world.spaces);
    if (nodes.any()) {
        world.start(entry, nodes);
        passed.started.push_back(entry.link);
        return true;
    }
    if (world.machine.settings.preempts) {
        const auto notified = evict(world, victims(world, entry, allowed, nodes));
        passed.evicted.insert(passed.evicted.end(), notified.begin(), notified.end());
    }
    return false;
}

} // namespace

Passed main_pass(World& world, std::optional<int> depth)
{
    Passed passed;
    OpenPartitions open_partitions(world);
    int queried = 0;
    ++world.course.effort.main_passes;
    for (std::size_t place = 0; place < world.queue.size(); ++place) {
        const Entry& entry = world.queue[place];
        if (open_partitions.open == 0) {
            break;
        }
        const int partition = entry.partition;
        const bool is_shut = open_partitions.shut[static_cast<std::size_t>(partition)];
        if (is_shut && !depth) {
            place = open_partitions.skip(world, place);
            continue;
        }
        if (world.links[entry.link].state != State::pending) {
            continue; // started in another partition
        }
        if (depth && queried++ > *depth) {
            passed.stopped_early = true;
            break;
        }
        if (is_shut || !world.may_start(entry)) {
            continue; // over a limit: it does not block other jobs
        }
        if (!try_entry(world, entry, open_partitions, passed)) {
            open_partitions.close(world, partition);
        }
    }
    world.drop_started();
    return passed;
}

} // namespace gpuq::sim
