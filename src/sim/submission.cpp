// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/world.h"

#include "sim/at.h"

#include <algorithm>

namespace gpuq::sim {
namespace {

int number_of(const std::vector<std::string>& names, const std::string& name)
{
    return static_cast<int>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
}

bool has_all(const std::vector<std::string>& there, const std::vector<std::string>& wanted)
{
    return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& feature) {
        return std::find(there.begin(), there.end(), feature) != there.end();
    });
}

} // namespace

Link World::first_link(std::size_t index)
{
    const Job& job = jobs[index];
    Link link;
    link.job = index;
    link.eligible = job.submit;
    link.work = job.duration;
    link.partitions = &job.partitions;
    link.share = fair.user(job.account, job.user);
    link.claim.gpus = job.gpus;
    link.claim.shares = job.shares;
    link.claim.user = number_of(m_users, job.user);
    link.claim.account = number_of(m_accounts, job.account);
    link.claim.qos = job.qos;
    link.claim.limit = job.limit > Seconds{0} || job.partitions.empty()
                           ? job.limit
                           : machine.partitions[at(job.partitions.front())].default_time;
    return link;
}

void World::submit(std::size_t job)
{
    enqueue(links.add(first_link(job)));
}

bool World::may_use(int partition, const Link& link) const
{
    const Partition& rules = machine.partitions[at(partition)];
    const std::string& account = jobs[link.job].account;
    return link.claim.limit <= m_longest[at(partition)] &&
           (rules.accounts.empty() || std::find(rules.accounts.begin(), rules.accounts.end(),
                                                account) != rules.accounts.end());
}

std::optional<Shape> World::shape_in(int partition, const Link& link) const
{
    const Job& job = jobs[link.job];
    // A job is divided in the same way, whichever of its partitions it starts in.
    int largest = 0;
    for (const int other : *link.partitions) {
        for (const int node : machine.partitions[at(other)].nodes) {
            largest = std::max(largest, machine.nodes[at(node)].gpus);
        }
    }
    const std::optional<Need> need = need_of(job, largest);
    if (!need || !may_use(partition, link)) {
        return std::nullopt;
    }
    Shape shape{partition, *need, {}, job.model, job.reservation};
    for (const int node : machine.partitions[at(partition)].nodes) {
        const Node& there = machine.nodes[at(node)];
        if ((job.model.empty() || there.model == job.model) &&
            has_all(there.features, job.features)) {
            shape.nodes.set(at(node));
        }
    }
    if (job.reservation) {
        shape.nodes &= node_set(machine.reservations[at(*job.reservation)].nodes);
    }
    if (!placer.possible(*need, shape.nodes, empty_spaces(machine.nodes))) {
        return std::nullopt;
    }
    return shape;
}

std::uint32_t World::shape_for(const Shape& shape)
{
    const auto found = std::find(shapes.begin(), shapes.end(), shape);
    if (found != shapes.end()) {
        return static_cast<std::uint32_t>(found - shapes.begin());
    }
    shapes.push_back(shape);
    fit_times.emplace_back(shape.need, shape.nodes);
    plan_matters.push_back(false);
    m_priorities.size_factors.push_back(size_factor(shape, Considered::before));
    return static_cast<std::uint32_t>(shapes.size() - 1);
}

/// Whether an entry in partition number `i` of a job might come before one in its other partitions.
bool World::is_before_others(const std::vector<int>& partitions, std::size_t i) const
{
    const auto tier = [&](std::size_t k) { return machine.partitions[at(partitions[k])].tier; };
    bool is_last = true;
    for (std::size_t k = 0; k < partitions.size(); ++k) {
        is_last = is_last && (k == i || tier(k) > tier(i));
    }
    return machine.settings.backfill.one_reservation_per_job && !is_last;
}

void World::enqueue(std::uint32_t index)
{
    Link& link = links[index];
    const Job& job = jobs[link.job];
    const std::vector<int>& partitions = *link.partitions;
    const bool accepted =
        !partitions.empty() && (link.requeued || limits.may_submit(link.claim, partitions.front()));
    bool queued = false;
    for (std::size_t i = 0; accepted && i < partitions.size(); ++i) {
        const std::optional<Shape> shape = shape_in(partitions[i], link);
        if (!shape) {
            continue;
        }
        Entry entry{.tier = machine.partitions[at(partitions[i])].tier,
                    .submit = link.eligible,
                    .id = job.id,
                    .link = index,
                    .shape = shape_for(*shape),
                    .position = static_cast<int>(i),
                    .partition = partitions[i],
                    .share = link.share,
                    .qos = link.claim.qos.value_or(-1)};
        entry.priority = first_priority(entry);
        plan_matters[entry.shape] = plan_matters[entry.shape] || is_before_others(partitions, i);
        if (is_open(entry)) {
            queue.insert(entry);
        } else {
            held.push_back(entry);
        }
        queued = true;
        m_priorities.some_age = true;
    }
    if (queued && !link.requeued) {
        limits.submitted(link.claim, partitions.front());
    }
    if (queued) {
        return;
    }
    Outcome& outcome = course.outcomes[link.job];
    outcome.ending = Ending::refused;
    outcome.end = now;
    links.finish(index);
}

} // namespace gpuq::sim
