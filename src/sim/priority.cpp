// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/world.h"

#include "sim/at.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace gpuq::sim {
namespace {

/// Terms of priorities that many entries have in common, by an index of the entries.
template <typename Compute>
class Terms {
public:
    explicit Terms(Compute compute)
        : m_compute(compute)
    {
    }

    double of(std::size_t index)
    {
        if (index >= m_known.size()) {
            m_known.resize(index + 1, std::numeric_limits<double>::quiet_NaN());
        }
        if (std::isnan(m_known[index])) {
            m_known[index] = m_compute(index);
        }
        return m_known[index];
    }

private:
    Compute m_compute;
    std::vector<double> m_known; ///< NaN: not computed
};

/// Always added in this order, which decides how the sum is rounded.
std::uint32_t total(double age, double size, double share, double partition, double qos)
{
    return static_cast<std::uint32_t>(
        std::clamp(age + size + share + partition + qos, 1.0, 4294967295.0));
}

} // namespace

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
    const double cpus = taken / static_cast<double>(std::max(1, m_priorities.cluster_cpus));
    return std::min(1.0, (nodes + cpus) / 2);
}

double World::age_term(Seconds submit) const
{
    const Weights& weights = machine.settings.weights;
    const double age = static_cast<double>((m_priorities.last_calculation - submit).count()) /
                       static_cast<double>(weights.max_age.count());
    return weights.age * std::clamp(age, 0.0, 1.0);
}

double World::partition_term(int partition) const
{
    const int factor = machine.partitions[at(partition)].job_factor;
    return machine.settings.weights.partition *
           (m_priorities.highest_factor > 0 ? factor / double(m_priorities.highest_factor) : 0);
}

double World::qos_term(int index) const
{
    const int qos = index >= 0 ? machine.qos[at(index)].priority : 0;
    return machine.settings.weights.qos *
           (m_priorities.highest_qos > 0 ? qos / double(m_priorities.highest_qos) : 0);
}

std::uint32_t World::first_priority(const Entry& entry)
{
    const Weights& weights = machine.settings.weights;
    return total(age_term(entry.submit),
                 weights.job_size * size_factor(shapes[entry.shape], Considered::never),
                 weights.fair_share * fair.factor(entry.share), partition_term(entry.partition),
                 qos_term(entry.qos));
}

/// Without fair tree, Slurm processes all jobs by age: a user's factor is computed at the first of
/// their pending jobs, so that use by later running jobs counts only the next time.
void World::charge_running()
{
    if (fair.is_tree()) {
        fair.fade(now - m_priorities.last_calculation);
        for (const Running& each : running) {
            charge(links[each.departure.link]);
        }
        fair.rank();
        return;
    }
    fair.weigh_accounts();
    fair.fade(now - m_priorities.last_calculation);
    std::vector<std::uint32_t> all;
    for (const Running& each : running) {
        all.push_back(each.departure.link);
    }
    for (std::size_t i = 0; i < queue.size(); ++i) {
        all.push_back(queue[i].link);
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
    m_priorities.last_calculation = now;
    return reprioritise();
}

/// Considers only entries whose priority may have changed: in a long queue, most have reached the
/// maximum age, and users keep their ranks for a while.
bool World::reprioritise()
{
    const Weights& weights = machine.settings.weights;
    const bool has_weights = weights.age != 0 || weights.fair_share != 0 || weights.job_size != 0 ||
                             weights.partition != 0 || weights.qos != 0;
    if (!has_weights || (!m_priorities.some_age && !fair.any_moved())) {
        return false;
    }
    m_priorities.some_age = false;
    Terms size(
        [&](std::size_t shape) { return weights.job_size * m_priorities.size_factors[shape]; });
    Terms share(
        [&](std::size_t user) { return weights.fair_share * fair.factor(static_cast<int>(user)); });
    Terms partition([&](std::size_t index) { return partition_term(static_cast<int>(index)); });
    Terms qos([&](std::size_t index) { return qos_term(static_cast<int>(index) - 1); });
    return queue.reprioritise([&](Entry& entry) {
        if (entry.aged && !fair.moved(entry.share)) {
            return false;
        }
        const auto before = std::exchange(
            entry.priority,
            total(age_term(entry.submit), size.of(entry.shape), share.of(at(entry.share)),
                  partition.of(at(entry.partition)), qos.of(at(entry.qos + 1))));
        ++course.effort.priorities;
        entry.aged = now - entry.submit >= weights.max_age;
        m_priorities.some_age = m_priorities.some_age || !entry.aged;
        return entry.priority != before;
    });
}

} // namespace gpuq::sim
