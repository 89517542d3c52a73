// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/queue_course.h"

#include "runs/queues/eligibility.h"
#include "runs/queues/free_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

// A run advances from one end of a job to the next, and then tests the line. Pending jobs with the
// same request and limit form a shape: if the first one does not fit, neither do the others. Most
// passes end at once, because no GPU is left; bookings are only computed if a job behind a blocked
// one could start.

namespace gpuq {
namespace {

using Part = NodeResources::Part;

/// Limits of Slurm's backfill: how far it plans ahead by default (bf_window), and a number of plans
/// that is enough for a good estimate.
constexpr double k_window = 24 * 3600;
constexpr std::size_t k_most_bookings = 30;
constexpr std::size_t k_booked_nodes = 500; ///< that are compared for all bookings of a pass
constexpr std::size_t k_exact_passes = 50;  ///< after these, only the first blocked job books
/// Ends that are so close together are one event: in seconds, and relative to the time that has
/// passed.
constexpr double k_cycle = 10;
constexpr double k_precision = 0.001;
constexpr std::size_t k_most_tested = 200; ///< shapes in one pass
constexpr std::size_t k_most_pending = 50'000;

double seconds(std::chrono::microseconds time)
{
    return std::chrono::duration<double>(time).count();
}

struct End {
    double at = 0;
    std::uint32_t holder = 0;
};

bool ends_later(const End& one, const End& other)
{
    return std::tie(one.at, one.holder) > std::tie(other.at, other.holder);
}

/// A job that holds resources.
struct Holder {
    std::uint32_t first = 0; ///< of its parts
    std::uint32_t count = 0;
    double limit_end = 0;
};

/// A shape in line, by the index of its next job.
struct Place {
    std::uint32_t job = 0;
    std::uint32_t shape = 0;
};

/// The bookings of a node in one pass.
struct Booking {
    double from = QueueCourse::k_never;
    double until = 0;
};

} // namespace

class QueueCourse::Run {
public:
    Run(const QueueCourse& course, const std::vector<double>& durations)
        : m_course(course)
        , m_durations(durations)
        , m_nodes(course.m_nodes)
        , m_scratch(course.m_nodes)
        , m_on_node(course.m_nodes.size())
        , m_bookings(course.m_nodes.size())
        , m_next(course.m_shapes.size())
        , m_starts(course.m_pending.size(), k_never)
    {
        for (const Pending& pending : course.m_pending) {
            m_left += pending.is_wanted && pending.can_start ? 1 : 0;
        }
        for (std::uint32_t i = 0; i < course.m_shapes.size(); ++i) {
            m_line.push_back({course.m_shapes[i].jobs.front(), i});
        }
        std::sort(m_line.begin(), m_line.end(),
                  [](const Place& one, const Place& other) { return one.job < other.job; });
    }

    std::vector<double> pass_time(const std::vector<double>& remaining)
    {
        for (std::size_t i = 0; i < m_course.m_running.size(); ++i) {
            const Running& job = m_course.m_running[i];
            hold(m_course.m_held[i], remaining[i], job.limit - job.elapsed);
        }
        start_those_that_fit();
        while (m_left > 0 && !m_ends.empty()) {
            const double first = std::max(m_time, m_ends.front().at);
            const double last = first + std::max(k_cycle, k_precision * first);
            while (!m_ends.empty() && m_ends.front().at <= last) {
                m_time = std::max(m_time, m_ends.front().at);
                release();
            }
            start_those_that_fit();
        }
        return std::move(m_starts);
    }

private:
    void hold(const std::vector<Part>& parts, double end, double limit_end)
    {
        const auto holder = static_cast<std::uint32_t>(m_holders.size());
        m_holders.push_back({static_cast<std::uint32_t>(m_parts.size()),
                             static_cast<std::uint32_t>(parts.size()), limit_end});
        m_parts.insert(m_parts.end(), parts.begin(), parts.end());
        for (const Part& part : parts) {
            if (m_on_node[part.node].empty() || m_on_node[part.node].back() != holder) {
                m_on_node[part.node].push_back(holder);
            }
        }
        if (end < k_never) {
            m_ends.push_back({end, holder});
            std::push_heap(m_ends.begin(), m_ends.end(), ends_later);
        }
    }

    void release()
    {
        std::pop_heap(m_ends.begin(), m_ends.end(), ends_later);
        const std::uint32_t number = m_ends.back().holder;
        m_ends.pop_back();
        const Holder& holder = m_holders[number];
        for (std::uint32_t i = 0; i < holder.count; ++i) {
            const Part& part = m_parts[holder.first + i];
            m_nodes.give(part);
            std::erase(m_on_node[part.node], number);
        }
    }

    const Shape& shape(const Place& place) const { return m_course.m_shapes[place.shape]; }

    void start_those_that_fit()
    {
        m_blocked.clear();
        m_booked = 0;
        ++m_passes;
        for (std::size_t at = 0; at < m_line.size() && m_left > 0;) {
            const Shape& next = shape(m_line[at]);
            if (m_nodes.free_gpus() == 0 && m_course.m_all_need_gpus) {
                return;
            }
            if (fits(next, /*booked=*/false) && (m_blocked.empty() || fits_beside_bookings(next))) {
                start(at);
                continue;
            }
            m_blocked.push_back(&next);
            if (m_blocked.size() == k_most_tested) {
                return;
            }
            ++at;
        }
    }

    bool fits_beside_bookings(const Shape& next)
    {
        if (m_booked == 0) {
            std::fill(m_bookings.begin(), m_bookings.end(), Booking{});
        }
        for (; m_booked < std::min(m_blocked.size(), most_bookings()); ++m_booked) {
            book(*m_blocked[m_booked]);
        }
        return fits(next, /*booked=*/true);
    }

    std::size_t most_bookings() const
    {
        return m_passes > k_exact_passes
                   ? 1
                   : std::clamp<std::size_t>(k_booked_nodes /
                                                 std::max<std::size_t>(m_bookings.size(), 1),
                                             1, k_most_bookings);
    }

    /// Sets m_placed to the parts with which the next job of a shape would start.
    bool fits(const Shape& next, bool booked)
    {
        std::size_t count = next.least;
        for (const NodeResources::Need& need : next.needs) {
            m_placed.clear();
            std::size_t found = 0;
            for (const Node node : *next.nodes) {
                if (booked && m_time + next.limit > m_bookings[node].from) {
                    continue;
                }
                found += m_nodes.fit(node, need, m_placed) ? 1 : 0;
                if (found == count) {
                    return true;
                }
            }
            ++count;
        }
        return false;
    }

    void start(std::size_t at)
    {
        Place& place = m_line[at];
        const Shape& its = shape(place);
        for (const Part& part : m_placed) {
            m_nodes.take(part);
        }
        m_starts[place.job] = m_time;
        m_left -= m_course.m_pending[place.job].is_wanted ? 1 : 0;
        hold(m_placed, m_time + m_durations[place.job], m_time + its.limit);
        const std::size_t next = ++m_next[place.shape];
        if (next == its.jobs.size()) {
            m_line.erase(m_line.begin() + static_cast<std::ptrdiff_t>(at));
            return;
        }
        place.job = its.jobs[next];
        const auto begin = m_line.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = std::find_if(begin + 1, m_line.end(),
                                      [&](const Place& other) { return other.job > begin->job; });
        std::rotate(begin, begin + 1, end);
    }

    /// Books the nodes on which the job could start soonest.
    void book(const Shape& blocked)
    {
        m_soonest.clear();
        for (const Node node : *blocked.nodes) {
            const double at = available(node, blocked);
            if (at < k_never) {
                m_soonest.emplace_back(at, node);
            }
        }
        if (m_soonest.size() < blocked.least) {
            return;
        }
        const auto last = m_soonest.begin() + static_cast<std::ptrdiff_t>(blocked.least) - 1;
        std::nth_element(m_soonest.begin(), last, m_soonest.end());
        if (last->first > m_time + k_window) {
            return;
        }
        for (auto one = m_soonest.begin(); one <= last; ++one) {
            Booking& booking = m_bookings[one->second];
            booking.from = std::min(booking.from, last->first);
            booking.until = std::max(booking.until, last->first + blocked.limit);
        }
    }

    /// When a node has room for the shape, by the time limits of the jobs on it.
    double available(Node node, const Shape& blocked)
    {
        const NodeResources::Need& need = blocked.needs.front();
        if (!m_nodes.could_fit(node, need)) {
            return k_never;
        }
        m_scratch.copy_node(m_nodes, node);
        m_holders_here = m_on_node[node];
        std::sort(m_holders_here.begin(), m_holders_here.end(),
                  [&](std::uint32_t one, std::uint32_t other) {
                      return m_holders[one].limit_end < m_holders[other].limit_end;
                  });
        double at = m_time;
        m_unused.clear();
        for (auto next = m_holders_here.begin(); !m_scratch.fit(node, need, m_unused); ++next) {
            if (next == m_holders_here.end()) {
                return k_never;
            }
            const Holder& holder = m_holders[*next];
            for (std::uint32_t i = 0; i < holder.count; ++i) {
                if (m_parts[holder.first + i].node == node) {
                    m_scratch.give(m_parts[holder.first + i]);
                }
            }
            at = std::max(at, holder.limit_end);
        }
        const Booking& booking = m_bookings[node];
        return at + blocked.limit > booking.from ? std::max(at, booking.until) : at;
    }

    const QueueCourse& m_course;
    const std::vector<double>& m_durations;
    NodeResources m_nodes;
    NodeResources m_scratch;
    double m_time = 0;
    std::size_t m_passes = 0;
    std::size_t m_left = 0; ///< wanted jobs that have not started
    std::vector<Part> m_parts;
    std::vector<Holder> m_holders;
    std::vector<End> m_ends; ///< a heap
    std::vector<std::vector<std::uint32_t>> m_on_node;
    std::vector<Place> m_line;
    std::vector<const Shape*> m_blocked; ///< in this pass
    std::size_t m_booked = 0;            ///< number of these with a booking
    std::vector<Booking> m_bookings;     ///< by node
    std::vector<std::size_t> m_next;     ///< job of each shape
    std::vector<double> m_starts;
    // Kept for their memory.
    std::vector<Part> m_placed, m_unused;
    std::vector<std::pair<double, Node>> m_soonest;
    std::vector<std::uint32_t> m_holders_here;
};

QueueCourse::QueueCourse(const AllJobs& all, const Inventory& inventory, Time now)
    : m_nodes(inventory)
{
    std::vector<const Job*> line;
    for (const Job& job : all.jobs) {
        if (job.state == JobState::running || job.state == JobState::suspended) {
            seat(job, now);
        } else if (could_start(job)) {
            line.push_back(&job);
        }
    }
    std::stable_sort(line.begin(), line.end(),
                     [](const Job* one, const Job* other) { return goes_before(*one, *other); });
    for (const Job* const job : line) {
        line_up(*job, inventory);
    }
    m_all_need_gpus = std::all_of(m_shapes.begin(), m_shapes.end(), [](const Shape& shape) {
        return !shape.needs.front().gpus.empty();
    });
}

std::vector<double> QueueCourse::run(const std::vector<double>& remaining,
                                     const std::vector<double>& durations) const
{
    return Run(*this, durations).pass_time(remaining);
}

void QueueCourse::seat(const Job& job, Time now)
{
    Running running{&job};
    if (job.started_at) {
        running.elapsed = std::max(0.0, seconds(now - *job.started_at));
    }
    if (job.ends_at) {
        running.limit = running.elapsed + std::max(0.0, seconds(*job.ends_at - now));
    }
    running.kind = RunTimes::kind_of(std::chrono::duration<double>(running.limit), job.gpus);
    m_held.push_back(m_nodes.held_by(job));
    for (const Part& part : m_held.back()) {
        m_nodes.take(part);
    }
    m_running.push_back(running);
}

void QueueCourse::line_up(const Job& job, const Inventory& inventory)
{
    const auto known = limit_of(job, inventory);
    const double limit = known ? seconds(*known) : k_never;
    add_tasks(job, limit, waits_for_queue(job) ? nullptr : find_shape(job, inventory, limit));
}

/// Null if no nodes could ever run the job.
QueueCourse::Shape* QueueCourse::find_shape(const Job& job, const Inventory& inventory,
                                            double limit)
{
    const std::vector<Node>& nodes = nodes_for(job, inventory);
    std::string request =
        fmt::format("{} {} {} {} {} {} {} {}", fmt::ptr(&nodes), limit, job.size.nodes,
                    most_nodes(job), job.size.cpus, job.size.memory_mib, job.size.whole_nodes,
                    job.size.share ? job.size.share->parts : 0);
    for (const RequestedGpus& gpus : job.size.gpus) {
        request += fmt::format(" {} {}", gpus.count, gpus.model);
    }
    const auto [index, is_new] = m_shape_index.try_emplace(std::move(request));
    if (is_new) {
        Shape shape = shape_of(job, nodes, limit);
        if (could_ever(shape)) {
            index->second = m_shapes.size();
            m_shapes.push_back(std::move(shape));
        }
    }
    return index->second ? &m_shapes[*index->second] : nullptr;
}

void QueueCourse::add_tasks(const Job& job, double limit, Shape* shape)
{
    const PendingTasks tasks = pending_tasks(job);
    const auto kind = RunTimes::kind_of(std::chrono::duration<double>(limit), job.gpus);
    const auto room = static_cast<int>(k_most_pending - std::min(k_most_pending, m_pending.size()));
    const int entries = std::min({tasks.count, tasks.at_once.value_or(tasks.count), room + 1});
    const bool complete = tasks.all_shown && entries <= room;
    if (!complete && shape != nullptr && !m_incomplete) {
        m_incomplete = m_pending.size();
    }
    for (int i = 0; i < entries; ++i) {
        Pending pending{&job, limit, kind,
                        tasks.count / entries + (i < tasks.count % entries ? 1 : 0),
                        shape != nullptr};
        pending.tasks = tasks.at_once ? pending.tasks : 1;
        if (shape != nullptr) {
            shape->jobs.push_back(static_cast<std::uint32_t>(m_pending.size()));
        }
        m_pending.push_back(pending);
    }
}

const std::vector<NodeResources::Node>& QueueCourse::nodes_for(const Job& job,
                                                               const Inventory& inventory)
{
    const auto [set, is_new] = m_node_sets.try_emplace(
        {job.partition, job.size.only_nodes, job.size.excluded_nodes}, std::vector<Node>());
    if (is_new) {
        for (const std::size_t node : usable_nodes(job, inventory)) {
            set->second.push_back(static_cast<Node>(node));
        }
    }
    return set->second;
}

QueueCourse::Shape QueueCourse::shape_of(const Job& job, const std::vector<Node>& nodes,
                                         double limit)
{
    Shape shape;
    shape.nodes = &nodes;
    shape.least = static_cast<std::size_t>(std::max(1, job.size.nodes));
    shape.limit = limit;
    const std::size_t most =
        std::min(nodes.size(), static_cast<std::size_t>(std::max(1, most_nodes(job))));
    for (std::size_t count = shape.least; count <= std::max(shape.least, most); ++count) {
        shape.needs.push_back(m_nodes.need_of(job, static_cast<int>(count)));
    }
    return shape;
}

bool QueueCourse::could_ever(const Shape& shape) const
{
    std::size_t count = shape.least;
    for (const NodeResources::Need& need : shape.needs) {
        const auto fitting = std::count_if(shape.nodes->begin(), shape.nodes->end(),
                                           [&](Node one) { return m_nodes.could_fit(one, need); });
        if (static_cast<std::size_t>(fitting) >= count++) {
            return true;
        }
    }
    return false;
}

} // namespace gpuq
