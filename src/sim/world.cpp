// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/world.h"

#include "sim/at.h"

#include <algorithm>
#include <utility>

namespace gpuq::sim {
namespace {

std::vector<std::string> sorted_names(const std::vector<Job>& jobs, std::string Job::*name)
{
    std::vector<std::string> names;
    for (const Job& job : jobs) {
        if (names.empty() || names.back() != job.*name) {
            names.push_back(job.*name);
        }
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

int cpus_of(const Node& node)
{
    return node.cpus > 0 ? node.cpus : node.gpus;
}

double weight_of(const Settings& settings, const std::string& model)
{
    for (const GpuWeight& gpu : settings.gpu_weights) {
        if (gpu.model == model) {
            return gpu.weight;
        }
    }
    return 1;
}

} // namespace

World::World(const Machine& machine_, const std::vector<Job>& jobs_)
    : machine(machine_)
    , jobs(jobs_)
    , placer(machine.nodes)
    , spaces(empty_spaces(machine.nodes))
    , limits(machine, sorted_names(jobs, &Job::user).size(),
             sorted_names(jobs, &Job::account).size())
    , fair(machine.shares, machine.settings.weights.half_life, machine.settings.weights.dampening)
    , departures(machine.nodes.size())
    , m_users(sorted_names(jobs, &Job::user))
    , m_accounts(sorted_names(jobs, &Job::account))
    , m_outages(machine.nodes.size())
{
    for (const Node& node : machine.nodes) {
        m_priorities.cluster_cpus += cpus_of(node);
    }
    for (const Partition& partition : machine.partitions) {
        partition_nodes.push_back(node_set(partition.nodes));
        m_longest.push_back(partition.max_time);
        m_priorities.highest_factor = std::max(m_priorities.highest_factor, partition.job_factor);
    }
    for (const Hours& hours : machine.hours) {
        for (std::size_t i = 0; i < m_longest.size(); ++i) {
            m_longest[i] = std::max(m_longest[i], hours.partitions[i].max_time);
        }
    }
    for (const Qos& qos : machine.qos) {
        m_priorities.highest_qos = std::max(m_priorities.highest_qos, qos.priority);
    }
    // All users have associations from the start, as in a database.
    for (const Share& share : machine.shares) {
        if (!share.user.empty()) {
            fair.user(share.account, share.user);
        }
    }
    for (const Job& job : jobs) {
        fair.user(job.account, job.user);
    }
    if (fair.is_tree()) {
        fair.rank();
    } else {
        fair.weigh_accounts();
    }
    course.outcomes.resize(jobs.size());
    course.pieces.reserve(jobs.size() + jobs.size() / 16);
}

bool World::may_start(const Entry& entry) const
{
    return limits.may_start(links[entry.link].claim, shapes[entry.shape].partition, now);
}

Seconds World::next_check(Seconds moment) const
{
    const Seconds period = machine.settings.timing.limit_check;
    return (moment + period - Seconds{1}) / period * period;
}

/// When a link that starts now actually leaves its nodes.
Seconds World::finish_of(Link& link) const
{
    const Job& job = jobs[link.job];
    const Seconds done = link.start + link.work;
    if (job.chain && done > link.ends_by) {
        link.cut = true;
        return link.ends_by; // it saves its state and ends on its own
    }
    const Seconds found = next_check(link.ends_by);
    link.cut = done > found;
    return link.cut ? found : done;
}

/// Where a running link is, or belongs.
std::vector<Running>::iterator World::place_of(const Departure& departure)
{
    return std::lower_bound(running.begin(), running.end(), departure,
                            [](const Running& a, const Departure& b) { return a.departure < b; });
}

/// The number of shares of a GPU of the only node.
int World::per_gpu_on(const NodeSet& nodes) const
{
    const int node = only_node(nodes);
    return node >= 0 ? std::max(1, machine.nodes[at(node)].per_gpu) : 1;
}

/// Slurm bills a job by the models that it has, whether it has requested them or not.
double World::weight_on(const NodeSet& nodes) const
{
    double sum = 0;
    nodes.for_each(
        [&](std::size_t node) { sum += weight_of(machine.settings, machine.nodes[node].model); });
    return sum / static_cast<double>(std::max<std::size_t>(1, nodes.count()));
}

void World::start(const Entry& entry, const NodeSet& nodes)
{
    Link& link = links[entry.link];
    const Shape& shape = shapes[entry.shape];
    m_started.push_back(entry);
    link.state = State::running;
    link.partition = shape.partition;
    link.need = shape.need;
    link.nodes = nodes;
    link.start = now;
    link.charged_until = now;
    link.ends_by = now + link.claim.limit;
    if (shape.reservation) {
        link.ends_by = std::min(link.ends_by, machine.reservations[at(*shape.reservation)].end);
    }
    link.finish = finish_of(link);
    link.parts = choose_gpus(spaces, link.need, nodes);
    link.gpus = link.need.shares > 0 ? static_cast<double>(link.need.shares) / per_gpu_on(nodes)
                                     : static_cast<double>(link.claim.gpus);
    link.weight = weight_on(nodes);
    change(spaces, link.need, nodes, link.parts, -1);
    limits.started(link.claim, link.partition, now);
    const Departure departure{link.ends_by, entry.link};
    departures.add(departure, link.need, nodes, link.parts);
    running.insert(place_of(departure), {departure, only_node(nodes)});

    Outcome& outcome = course.outcomes[link.job];
    if (outcome.links == 0) {
        outcome.start = now;
        outcome.partition = link.partition;
    }
    ++outcome.links;
    outcome.waited += now - link.eligible;
}

void World::drop_started()
{
    if (m_started.empty()) {
        return;
    }
    std::size_t last = 0;
    for (const Entry& started : m_started) {
        const bool has_others = links[started.link].partitions->size() > 1;
        last = std::max(last, has_others ? queue.size() - 1 : queue.place_of(started));
    }
    queue.remove(last, [&](const Entry& entry) {
        return std::any_of(m_started.begin(), m_started.end(),
                           [&](const Entry& started) { return started.link == entry.link; });
    });
    m_started.clear();
}

void World::charge(Link& link)
{
    const Seconds ran = now - link.charged_until;
    link.charged_until = now;
    const double counts =
        link.gpus * link.weight + link.need.nodes * link.need.cpus * machine.settings.cpu_weight;
    // Slurm decays a job's use since the last charge as if all of it had occurred at the start of
    // that time.
    fair.used(link.share, counts * static_cast<double>(ran.count()) * fair.kept(ran));
}

void World::record(const Link& link)
{
    Piece piece{link.job, link.number, link.partition, link.eligible, link.start, link.finish,
                {},       {}};
    int left = link.need.gpus_in_all;
    piece.nodes.reserve(static_cast<std::size_t>(link.need.nodes));
    piece.gpus.reserve(static_cast<std::size_t>(link.need.nodes));
    link.nodes.for_each([&](std::size_t node) {
        piece.nodes.push_back(static_cast<int>(node));
        piece.gpus.push_back(std::min(left, link.need.gpus));
        left -= link.need.gpus;
    });
    piece.parts = link.parts;
    course.pieces.push_back(std::move(piece));
}

/// Whether Slurm puts the job of an ended link back in its queue: the same job, still submitted.
bool World::is_requeued(const Link& link) const
{
    const bool by_owner =
        link.preempted && machine.partitions[at(link.partition)].preempt == Preempt::requeue;
    return link.cut && !jobs[link.job].chain && (link.failed || by_owner);
}

std::optional<std::uint32_t> World::end(std::uint32_t index)
{
    Link& link = links[index];
    const Departure departure{link.ends_by, index};
    departures.remove(departure, link.nodes);
    running.erase(place_of(departure));
    change(spaces, link.need, link.nodes, link.parts, 1);
    limits.ended(link.claim, link.partition, link.start);
    if (!is_requeued(link)) {
        limits.left(link.claim, link.partitions->front());
    }
    charge(link);
    record(link);

    Outcome& outcome = course.outcomes[link.job];
    outcome.end = link.finish;
    outcome.ending = Ending::completed;
    outcome.preempted += link.preempted ? 1 : 0;
    outcome.failed += link.failed ? 1 : 0;
    const auto next = link.cut ? next_after(link) : std::nullopt;
    links.finish(index);
    return next;
}

/// The time limit of a further link when `done` of the work is done.
Seconds limit_of_link(const Chain& chain, Seconds done)
{
    constexpr Seconds k_least = std::chrono::minutes{10};
    return chain.asked.count() == 0
               ? chain.limit
               : std::clamp(chain.asked - done, std::min(k_least, chain.limit), chain.limit);
}

/// The part of the work of an ended link that was saved.
Seconds saved_of(const Chain& chain, const Link& link, Seconds ran)
{
    return !link.failed ? ran : chain.saves.count() > 0 ? ran - ran % chain.saves : Seconds{0};
}

/// How a run continues whose link ended before its work was done.
std::optional<std::uint32_t> World::next_after(const Link& last)
{
    const Job& job = jobs[last.job];
    Link next;
    next.job = last.job;
    next.claim = last.claim;
    next.share = last.share;
    if (job.chain) {
        const Seconds ran = std::min(last.work, std::min(last.finish, last.ends_by) - last.start);
        next.number = last.number + 1;
        next.work =
            std::min(last.work, last.work - saved_of(*job.chain, last, ran) + job.chain->lost);
        next.eligible = last.finish + job.chain->gap;
        next.partitions = &job.chain->partitions;
        next.claim.limit = limit_of_link(*job.chain, job.duration - next.work);
        return links.add(std::move(next));
    }
    if (is_requeued(last)) {
        next.requeued = true;
        next.number = last.number;
        next.work = job.duration;
        next.eligible = last.finish + machine.settings.timing.requeue_delay;
        next.partitions = last.partitions;
        return links.add(std::move(next));
    }
    course.outcomes[last.job].ending = last.preempted ? Ending::cancelled : Ending::timed_out;
    return std::nullopt;
}

} // namespace gpuq::sim
