// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/world.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace gpuq::sim {
namespace {

std::size_t at(int index)
{
    return static_cast<std::size_t>(index);
}

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

int number_of(const std::vector<std::string>& names, const std::string& name)
{
    return static_cast<int>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
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

bool goes_before(const Entry& a, const Entry& b)
{
    return std::tie(b.tier, b.priority, a.submit, a.id, a.position) <
           std::tie(a.tier, a.priority, b.submit, b.id, b.position);
}

World::World(const Machine& machine_, const std::vector<Job>& jobs_)
    : machine(machine_)
    , jobs(jobs_)
    , placer(machine.nodes)
    , rooms(empty_rooms(machine.nodes))
    , limits(machine, sorted_names(jobs, &Job::user).size(),
             sorted_names(jobs, &Job::account).size())
    , fair(machine.shares, machine.settings.weights.half_life)
    , m_users(sorted_names(jobs, &Job::user))
    , m_accounts(sorted_names(jobs, &Job::account))
{
    for (const Node& node : machine.nodes) {
        m_cluster_cpus += cpus_of(node);
    }
    for (const Partition& partition : machine.partitions) {
        partition_nodes.push_back(node_set(partition.nodes));
        m_highest_factor = std::max(m_highest_factor, partition.job_factor);
    }
    for (const Qos& qos : machine.qos) {
        m_highest_qos = std::max(m_highest_qos, qos.priority);
    }
    // Everybody is an association from the start, as in a database.
    for (const Share& share : machine.shares) {
        if (!share.user.empty()) {
            fair.user(share.account, share.user);
        }
    }
    for (const Job& job : jobs) {
        fair.user(job.account, job.user);
    }
    fair.rank();
    course.outcomes.resize(jobs.size());
    links.reserve(jobs.size());
}

// --- submission ---------------------------------------------------------------------------------

Link World::first_link(std::size_t index)
{
    const Job& job = jobs[index];
    Link link;
    link.job = index;
    link.eligible = job.submit;
    link.work = job.duration;
    link.partitions = &job.partitions;
    link.share = fair.user(job.account, job.user);
    link.weight = weight_of(machine.settings, job.model);
    link.claim.gpus = job.gpus;
    link.claim.user = number_of(m_users, job.user);
    link.claim.account = number_of(m_accounts, job.account);
    link.claim.qos = job.qos;
    link.claim.limit = job.limit > Seconds{0} || job.partitions.empty()
                           ? job.limit
                           : machine.partitions[at(job.partitions.front())].default_time;
    return link;
}

std::uint32_t World::add(Link link)
{
    links.push_back(std::move(link));
    return static_cast<std::uint32_t>(links.size() - 1);
}

void World::submit(std::size_t job)
{
    enqueue(add(first_link(job)));
}

bool World::may_use(int partition, const Link& link) const
{
    const Partition& rules = machine.partitions[at(partition)];
    const std::string& account = jobs[link.job].account;
    return link.claim.limit <= rules.max_time &&
           (rules.accounts.empty() || std::find(rules.accounts.begin(), rules.accounts.end(),
                                                account) != rules.accounts.end());
}

std::optional<Shape> World::shape_in(int partition, const Link& link) const
{
    const Job& job = jobs[link.job];
    // One job has one cut, whichever of its partitions it starts in.
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
        shape.nodes.set(at(node), job.model.empty() || machine.nodes[at(node)].model == job.model);
    }
    if (job.reservation) {
        shape.nodes &= node_set(machine.reservations[at(*job.reservation)].nodes);
    }
    if (!placer.possible(*need, shape.nodes, empty_rooms(machine.nodes))) {
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
    return static_cast<std::uint32_t>(shapes.size() - 1);
}

void World::enqueue(std::uint32_t index)
{
    Link& link = links[index];
    const Job& job = jobs[link.job];
    const std::vector<int>& partitions = *link.partitions;
    const bool accepted = !partitions.empty() && limits.may_submit(link.claim, partitions.front());
    bool queued = false;
    for (std::size_t i = 0; accepted && i < partitions.size(); ++i) {
        const std::optional<Shape> shape = shape_in(partitions[i], link);
        if (!shape) {
            continue;
        }
        const Entry entry{.tier = machine.partitions[at(partitions[i])].tier,
                          .priority = priority_of(link, *shape),
                          .submit = link.eligible,
                          .id = job.id,
                          .link = index,
                          .shape = shape_for(*shape),
                          .position = static_cast<int>(i)};
        queue.insert(std::upper_bound(queue.begin(), queue.end(), entry, goes_before), entry);
        queued = true;
    }
    if (queued) {
        limits.submitted(link.claim, partitions.front());
        return;
    }
    link.state = State::over;
    Outcome& outcome = course.outcomes[link.job];
    outcome.ending = Ending::refused;
    outcome.end = now;
}

// --- start and end ------------------------------------------------------------------------------

bool World::may_start(const Entry& entry) const
{
    return limits.may_start(links[entry.link].claim, shapes[entry.shape].partition, now);
}

Seconds World::next_check(Seconds moment) const
{
    const Seconds period = machine.settings.timing.limit_check;
    return (moment + period - Seconds{1}) / period * period;
}

/// When a link that starts now really leaves its nodes.
Seconds World::finish_of(Link& link) const
{
    const Job& job = jobs[link.job];
    const Seconds done = link.start + link.work;
    if (job.chain && done > link.ends_by) {
        link.cut = true;
        return link.ends_by; // It saves and leaves by itself.
    }
    const Seconds found = next_check(link.ends_by);
    link.cut = done > found;
    return link.cut ? found : done;
}

void World::start(const Entry& entry, const NodeSet& nodes)
{
    Link& link = links[entry.link];
    const Shape& shape = shapes[entry.shape];
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
    change(rooms, link.need, nodes, -1);
    limits.started(link.claim, link.partition, now);
    const auto later = [&](std::uint32_t a, std::uint32_t b) {
        return std::tie(links[a].ends_by, a) < std::tie(links[b].ends_by, b);
    };
    running.insert(std::upper_bound(running.begin(), running.end(), entry.link, later), entry.link);

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
    std::erase_if(queue,
                  [&](const Entry& entry) { return links[entry.link].state != State::pending; });
}

void World::charge(Link& link)
{
    const Seconds ran = now - link.charged_until;
    link.charged_until = now;
    fair.used(link.share, link.claim.gpus * link.weight * static_cast<double>(ran.count()));
}

void World::record(const Link& link)
{
    Piece piece{link.job, link.number, link.partition, link.eligible, link.start, now, {}, {}};
    int left = link.need.gpus_in_all;
    for (std::size_t node = 0; node < machine.nodes.size(); ++node) {
        if (link.nodes.test(node)) {
            piece.nodes.push_back(static_cast<int>(node));
            piece.gpus.push_back(std::min(left, link.need.gpus));
            left -= link.need.gpus;
        }
    }
    course.pieces.push_back(std::move(piece));
}

std::optional<std::uint32_t> World::end(std::uint32_t index)
{
    Link& link = links[index];
    link.state = State::over;
    running.erase(std::find(running.begin(), running.end(), index));
    change(rooms, link.need, link.nodes, 1);
    limits.ended(link.claim, link.partition, link.start);
    limits.left(link.claim, link.partitions->front());
    charge(link);
    record(link);

    Outcome& outcome = course.outcomes[link.job];
    outcome.end = now;
    outcome.ending = Ending::completed;
    outcome.preempted += link.preempted ? 1 : 0;
    return link.cut ? next_after(index) : std::nullopt;
}

/// How a run goes on whose link was ended before its work was done.
std::optional<std::uint32_t> World::next_after(std::uint32_t index)
{
    const Link& last = links[index];
    const Job& job = jobs[last.job];
    Link next;
    next.job = last.job;
    next.claim = last.claim;
    next.share = last.share;
    next.weight = last.weight;
    if (job.chain) {
        const Seconds ran = std::min(last.work, std::min(now, last.ends_by) - last.start);
        next.number = last.number + 1;
        next.work = std::min(last.work, last.work - ran + job.chain->lost);
        next.eligible = now + job.chain->gap;
        next.partitions = &job.chain->partitions;
        next.claim.limit = job.chain->limit;
        return add(std::move(next));
    }
    if (last.preempted && machine.partitions[at(last.partition)].preempt == Preempt::requeue) {
        next.number = last.number;
        next.work = job.duration;
        next.eligible = now + machine.settings.timing.requeue_delay;
        next.partitions = last.partitions;
        return add(std::move(next));
    }
    course.outcomes[last.job].ending = last.preempted ? Ending::cancelled : Ending::timed_out;
    return std::nullopt;
}

// --- reservations -------------------------------------------------------------------------------

NodeSet World::open_nodes(const Shape& shape, Seconds start, Seconds limit) const
{
    NodeSet open = shape.nodes;
    for (std::size_t i = 0; i < machine.reservations.size(); ++i) {
        const Reservation& reservation = machine.reservations[i];
        const Seconds zero = reservation.floats ? now : Seconds{0};
        const Seconds begin = zero + reservation.start;
        const Seconds until = zero + reservation.end;
        if (shape.reservation && at(*shape.reservation) == i) {
            if (start < begin || start >= until) {
                return {};
            }
        } else if (start < until && begin < start + limit) {
            open &= ~node_set(reservation.nodes);
        }
    }
    return open;
}

std::optional<Seconds> World::next_opening(const Shape& shape, Seconds start) const
{
    std::optional<Seconds> next;
    const auto consider = [&](Seconds moment) {
        if (moment > start && (!next || moment < *next)) {
            next = moment;
        }
    };
    for (std::size_t i = 0; i < machine.reservations.size(); ++i) {
        const Reservation& reservation = machine.reservations[i];
        const Seconds zero = reservation.floats ? now : Seconds{0};
        const bool own = shape.reservation && at(*shape.reservation) == i;
        consider(zero + (own ? reservation.start : reservation.end));
    }
    return next;
}

// --- priority -----------------------------------------------------------------------------------

std::uint32_t World::priority_of(const Link& link, const Shape& shape) const
{
    const Weights& weights = machine.settings.weights;
    const double age = static_cast<double>((m_last_calc - link.eligible).count()) /
                       static_cast<double>(weights.max_age.count());
    const double nodes = shape.need.nodes / static_cast<double>(machine.nodes.size());
    const double cpus = std::max(1, shape.need.cpus * shape.need.nodes) /
                        static_cast<double>(std::max(1, m_cluster_cpus));
    const int factor = machine.partitions[at(shape.partition)].job_factor;
    const int qos = link.claim.qos ? machine.qos[at(*link.claim.qos)].priority : 0;

    double priority = weights.age * std::clamp(age, 0.0, 1.0);
    priority += weights.job_size * std::min(1.0, (nodes + cpus) / 2);
    priority += weights.fair_share * fair.factor(link.share);
    priority += weights.partition * (m_highest_factor > 0 ? factor / double(m_highest_factor) : 0);
    priority += weights.qos * (m_highest_qos > 0 ? qos / double(m_highest_qos) : 0);
    return static_cast<std::uint32_t>(std::clamp(priority, 1.0, 4294967295.0));
}

bool World::recalculate()
{
    if (machine.settings.weights.fair_share != 0) {
        fair.fade(now - m_last_calc);
        for (const std::uint32_t link : running) {
            charge(links[link]);
        }
        fair.rank();
    }
    m_last_calc = now;
    for (Entry& entry : queue) {
        entry.priority = priority_of(links[entry.link], shapes[entry.shape]);
    }
    if (std::is_sorted(queue.begin(), queue.end(), goes_before)) {
        return false;
    }
    std::sort(queue.begin(), queue.end(), goes_before);
    return true;
}

} // namespace gpuq::sim
