// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/machine.h"

#include "sim/gpu_parts.h"

#include <algorithm>
#include <fmt/format.h>

namespace gpuq::sim {
namespace {

Error wrong(const std::string& what)
{
    return fail(Error::Kind::usage, "invalid simulated machine: " + what);
}

bool all_below(const std::vector<int>& indexes, std::size_t size)
{
    return std::all_of(indexes.begin(), indexes.end(), [&](int index) {
        return index >= 0 && static_cast<std::size_t>(index) < size;
    });
}

Result<void> check_nodes(const Machine& machine)
{
    if (machine.nodes.empty() || machine.nodes.size() > k_max_nodes) {
        return wrong(
            fmt::format("{} nodes; 1 to {} can be simulated", machine.nodes.size(), k_max_nodes));
    }
    for (const Node& node : machine.nodes) {
        if (node.gpus < 0 || node.cpus < 0 || node.memory_mib < 0) {
            return wrong(
                fmt::format("node {} has a negative number of GPUs, CPUs or memory", node.name));
        }
        if (node.per_gpu < 0 || node.per_gpu > GpuParts::k_most_parts ||
            (node.per_gpu > 0 && node.gpus > GpuParts::k_most_gpus)) {
            return wrong(fmt::format(
                "node {} has {} GPUs with {} shares each; at most {} with {} each can "
                "be simulated",
                node.name, node.gpus, node.per_gpu, GpuParts::k_most_gpus, GpuParts::k_most_parts));
        }
        const bool in_tree = node.leaf > 0;
        if (in_tree != (machine.nodes.front().leaf > 0) || node.leaf < 0 ||
            !all_below({node.leaf - (in_tree ? 1 : 0)}, k_max_nodes)) {
            return wrong(fmt::format("node {} is on no switch, or on one too many", node.name));
        }
    }
    return {};
}

Result<void> check_partitions(const Machine& machine)
{
    for (const Partition& partition : machine.partitions) {
        if (!all_below(partition.nodes, machine.nodes.size())) {
            return wrong(fmt::format("partition {} names an unknown node", partition.name));
        }
        if (partition.qos && !all_below({*partition.qos}, machine.qos.size())) {
            return wrong(fmt::format("partition {} names an unknown QOS", partition.name));
        }
        if (partition.max_time <= Seconds{0} || partition.default_time <= Seconds{0} ||
            partition.grace < Seconds{0}) {
            return wrong(fmt::format("partition {} has an invalid time limit", partition.name));
        }
    }
    return {};
}

Result<void> check_reservations(const Machine& machine)
{
    for (const Reservation& reservation : machine.reservations) {
        if (!all_below(reservation.nodes, machine.nodes.size())) {
            return wrong(fmt::format("reservation {} names an unknown node", reservation.name));
        }
        if (reservation.end <= reservation.start) {
            return wrong(fmt::format("reservation {} ends before it starts", reservation.name));
        }
    }
    return {};
}

bool is_alike(const Partition& one, const Partition& other)
{
    return one.name == other.name && one.nodes == other.nodes && one.tier == other.tier &&
           one.qos == other.qos && one.preempt == other.preempt && other.max_time > Seconds{0} &&
           other.default_time > Seconds{0} && other.notice >= Seconds{0};
}

Result<void> check_hours(const Machine& machine)
{
    for (const Hours& hours : machine.hours) {
        if (hours.qos.size() != machine.qos.size() ||
            !std::equal(machine.partitions.begin(), machine.partitions.end(),
                        hours.partitions.begin(), hours.partitions.end(), is_alike)) {
            return wrong("hours with other partitions or QOS");
        }
    }
    Seconds last{0};
    for (const HoursFrom& change : machine.changes) {
        if (change.hours >= machine.hours.size() || change.time < last) {
            return wrong("unknown hours, or hours that are not ordered by time");
        }
        last = change.time;
    }
    return {};
}

Result<void> check_outages(const Machine& machine)
{
    for (const Outage& outage : machine.outages) {
        if (!all_below({outage.node}, machine.nodes.size()) || outage.end <= outage.start) {
            return wrong("an outage of an unknown node, or one that ends before it starts");
        }
    }
    return {};
}

Result<void> check_settings(const Settings& settings)
{
    const Timing& timing = settings.timing;
    const bool periods =
        settings.weights.calc_period > Seconds{0} && settings.weights.max_age > Seconds{0} &&
        settings.backfill.interval > Seconds{0} && settings.backfill.resolution > Seconds{0} &&
        timing.sched_interval > Seconds{0} && timing.limit_check > Seconds{0};
    const bool delays = timing.submission.count() >= 0 && timing.completion.count() >= 0 &&
                        timing.kill_wait >= Seconds{0} && timing.requeue_delay >= Seconds{0} &&
                        settings.weights.half_life >= Seconds{0} &&
                        settings.weights.dampening >= 0 && timing.clock >= Seconds{0} &&
                        timing.backfill_test.count() >= 0;
    if (!periods || !delays) {
        return wrong("a period of its settings is not positive, or a delay is negative");
    }
    return {};
}

} // namespace

Result<void> check(const Machine& machine)
{
    TRY(check_nodes(machine));
    TRY(check_partitions(machine));
    TRY(check_reservations(machine));
    TRY(check_hours(machine));
    TRY(check_outages(machine));
    return check_settings(machine.settings);
}

} // namespace gpuq::sim
