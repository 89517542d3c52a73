// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/world.h"

#include "sim/at.h"

#include <algorithm>

namespace gpuq::sim {

/// The size of a job, between 0 and 1.
double World::size_factor(const Shape& shape, Considered considered) const
{
    const Need& need = shape.need;
    const int min_nodes = need.min_nodes > 0 ? need.min_nodes : need.nodes;
    const double nodes = min_nodes / static_cast<double>(machine.nodes.size());
    // Before select/cons_tres has processed it, a job counts with the CPUs that it specifies, or
    // with one. If CPUs are not counted, GPUs are used instead.
    const int taken = considered == Considered::never ? std::max(1, need.counted * need.nodes)
                      : need.cpus > 0                 ? need.cpus * need.nodes
                                                      : need.gpus_in_all;
    const double cpus = taken / static_cast<double>(std::max(1, m_cluster_cpus));
    return std::min(1.0, (nodes + cpus) / 2);
}

std::uint32_t World::priority_of(const Entry& entry, Considered considered)
{
    const Weights& weights = machine.settings.weights;
    const double age = static_cast<double>((m_last_calc - entry.submit).count()) /
                       static_cast<double>(weights.max_age.count());
    const double size = considered == Considered::never
                            ? size_factor(shapes[entry.shape], considered)
                            : m_size_factors[entry.shape];
    const int factor = machine.partitions[at(entry.partition)].job_factor;
    const int qos = entry.qos >= 0 ? machine.qos[at(entry.qos)].priority : 0;

    double priority = weights.age * std::clamp(age, 0.0, 1.0);
    priority += weights.job_size * size;
    priority += weights.fair_share * fair.factor(entry.share);
    priority += weights.partition * (m_highest_factor > 0 ? factor / double(m_highest_factor) : 0);
    priority += weights.qos * (m_highest_qos > 0 ? qos / double(m_highest_qos) : 0);
    return static_cast<std::uint32_t>(std::clamp(priority, 1.0, 4294967295.0));
}

/// Without fair tree, Slurm processes all jobs by age: a user's factor is computed at the first of
/// their pending jobs, so that use by later running jobs counts only the next time.
void World::charge_running()
{
    if (fair.is_tree()) {
        fair.fade(now - m_last_calc);
        for (const Running& each : running) {
            charge(links[each.departure.link]);
        }
        fair.rank();
        return;
    }
    fair.weigh_accounts();
    fair.fade(now - m_last_calc);
    std::vector<std::uint32_t> all;
    for (const Running& each : running) {
        all.push_back(each.departure.link);
    }
    for (const Entry& entry : queue) {
        all.push_back(entry.link);
    }
    std::sort(all.begin(), all.end());
    for (const std::uint32_t link : all) {
        if (links[link].state == State::running) {
            charge(links[link]);
        } else {
            fair.factor(links[link].share);
        }
    }
}

bool World::recalculate()
{
    if (machine.settings.weights.fair_share != 0) {
        charge_running();
    }
    m_last_calc = now;
    if (!reprioritise() || std::is_sorted(queue.begin(), queue.end(), goes_before)) {
        return false;
    }
    std::sort(queue.begin(), queue.end(), goes_before);
    return true;
}

/// Considers only entries whose priority may have changed: in a long queue, most have reached the
/// maximum age, and users keep their ranks for a while.
bool World::reprioritise()
{
    if (!m_some_age && !fair.any_moved()) {
        return false;
    }
    m_some_age = false;
    bool changed = false;
    for (Entry& entry : queue) {
        if (entry.aged && !fair.moved(entry.share)) {
            continue;
        }
        const auto priority = priority_of(entry, Considered::before);
        ++course.effort.priorities;
        changed = changed || priority != entry.priority;
        entry.priority = priority;
        entry.aged = now - entry.submit >= machine.settings.weights.max_age;
        m_some_age = m_some_age || !entry.aged;
    }
    return changed;
}

} // namespace gpuq::sim
