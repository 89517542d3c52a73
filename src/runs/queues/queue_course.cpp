// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/queue_course.h"

#include "runs/queues/eligibility.h"
#include "runs/queues/free_gpus.h"
#include "runs/queues/holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <tuple>
#include <utility>

// A run advances from one end of a job to the next, and then tests the line. Pending jobs with the
// same request and limit form a shape: if the first one does not fit, neither do the others, nor
// other shapes with the same request in that pass. Most passes end at once, because no GPU is left;
// bookings are only computed if a job behind a blocked one could start. Only nodes with enough free
// GPUs are tested, and when a node has room by the time limits is computed again only after its
// jobs have changed: so a start costs the same in a long queue as in a short one.

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

/// A shape in line, by the index of its next job.
struct Place {
    std::uint32_t job = 0;
    std::uint32_t shape = 0;
};

bool is_before(const Place& one, const Place& other)
{
    return one.job < other.job;
}

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
        , m_holders(course.m_nodes)
        , m_bookings(course.m_nodes.size())
        , m_next(course.m_shapes.size())
        , m_failed(course.m_requests.size())
        , m_starts(course.m_pending.size(), k_never)
    {
        for (const Pending& pending : course.m_pending) {
            m_left += pending.is_wanted && pending.can_start ? 1 : 0;
        }
        for (std::uint32_t i = 0; i < course.m_shapes.size(); ++i) {
            m_line.push_back({course.m_shapes[i].jobs.front(), i});
        }
        std::sort(m_line.begin(), m_line.end(), is_before);
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
        const std::uint32_t holder = m_holders.add(parts, limit_end);
        if (end < k_never) {
            m_ends.push_back({end, holder});
            std::push_heap(m_ends.begin(), m_ends.end(), ends_later);
        }
    }

    void release()
    {
        std::pop_heap(m_ends.begin(), m_ends.end(), ends_later);
        m_holders.release(m_ends.back().holder, m_nodes);
        m_ends.pop_back();
    }

    const Shape& shape(const Place& place) const { return m_course.m_shapes[place.shape]; }
    const Request& request(const Shape& its) const { return m_course.m_requests[its.request]; }

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
            if (fits_now(next) && (m_blocked.empty() || fits_beside_bookings(next))) {
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

    /// Within a pass, free resources only become fewer.
    bool fits_now(const Shape& next)
    {
        if (m_failed[next.request] == m_passes) {
            return false;
        }
        const bool found = fits(next, /*booked=*/false);
        m_failed[next.request] = found ? 0 : m_passes;
        return found;
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
        std::size_t count = request(next).least;
        for (const NodeResources::Need& need : request(next).needs) {
            const NodeSet* const free = m_nodes.with_free_gpus(need.all_gpus);
            m_placed.clear();
            std::size_t found = 0;
            const auto is_last = [&](Node node) {
                if (booked && m_time + next.limit > m_bookings[node].from) {
                    return false;
                }
                found += m_nodes.fit(node, need, m_placed) ? 1 : 0;
                return found == count;
            };
            if (free != nullptr && any_of_both(*request(next).nodes, *free, is_last)) {
                return true;
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
        const auto begin = m_line.begin() + static_cast<std::ptrdiff_t>(at);
        if (next == its.jobs.size()) {
            m_line.erase(begin);
            return;
        }
        place.job = its.jobs[next];
        std::rotate(begin, begin + 1, std::upper_bound(begin + 1, m_line.end(), place, is_before));
    }

    /// Books the nodes on which the job could start soonest.
    void book(const Shape& blocked)
    {
        const Request& its = request(blocked);
        const auto rooms = m_holders.rooms_for(blocked.request, its.needs.front());
        m_soonest.clear();
        any_of_both(*its.nodes, *its.nodes, [&](Node node) {
            const double at = available(node, blocked, rooms.from(node, m_nodes));
            if (at < k_never) {
                m_soonest.emplace_back(at, node);
            }
            return false;
        });
        if (m_soonest.size() < its.least) {
            return;
        }
        const auto last = m_soonest.begin() + static_cast<std::ptrdiff_t>(its.least) - 1;
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

    /// When a node that has room from `room` on is not booked either.
    double available(Node node, const Shape& blocked, double room) const
    {
        const double at = std::max(m_time, room);
        const Booking& booking = m_bookings[node];
        return at + blocked.limit > booking.from ? std::max(at, booking.until) : at;
    }

    const QueueCourse& m_course;
    const std::vector<double>& m_durations;
    NodeResources m_nodes;
    Holders m_holders;
    double m_time = 0;
    std::size_t m_passes = 0;
    std::size_t m_left = 0;              ///< wanted jobs that have not started
    std::vector<End> m_ends;             ///< a heap
    std::deque<Place> m_line;            ///< sorted; most leave near its head
    std::vector<const Shape*> m_blocked; ///< in this pass
    std::size_t m_booked = 0;            ///< number of these with a booking
    std::vector<Booking> m_bookings;     ///< by node
    std::vector<std::size_t> m_next;     ///< job of each shape
    std::vector<std::size_t> m_failed;   ///< by request: the pass in which it did not fit
    std::vector<double> m_starts;
    // Kept for their memory.
    std::vector<Part> m_placed;
    std::vector<std::pair<double, Node>> m_soonest;
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
    m_all_need_gpus = std::all_of(m_requests.begin(), m_requests.end(), [](const Request& one) {
        return !one.can_start || !one.needs.front().gpus.empty();
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
    const NodeSet& nodes = nodes_for(job, inventory);
    std::string text = fmt::format(
        "{} {} {} {} {} {} {}", fmt::ptr(&nodes), job.size.nodes, most_nodes(job), job.size.cpus,
        job.size.memory_mib, job.size.whole_nodes, job.size.share ? job.size.share->parts : 0);
    for (const RequestedGpus& gpus : job.size.gpus) {
        text += fmt::format(" {} {}", gpus.count, gpus.model);
    }
    const auto [known, is_new] = m_request_index.try_emplace(std::move(text), m_requests.size());
    if (is_new) {
        m_requests.push_back(request_of(job, nodes));
    }
    const std::size_t request = known->second;
    if (!m_requests[request].can_start) {
        return nullptr;
    }
    const auto [index, is_new_shape] = m_shape_index.try_emplace({request, limit}, m_shapes.size());
    if (is_new_shape) {
        m_shapes.push_back({request, limit, {}});
    }
    return &m_shapes[index->second];
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

const NodeResources::NodeSet& QueueCourse::nodes_for(const Job& job, const Inventory& inventory)
{
    const auto [set, is_new] = m_node_sets.try_emplace(
        {job.partition, job.size.only_nodes, job.size.excluded_nodes}, NodeSet());
    if (is_new) {
        set->second.resize((m_nodes.size() + 63) / 64);
        for (const std::size_t node : usable_nodes(job, inventory)) {
            set->second[node / 64] |= std::uint64_t{1} << node % 64;
        }
    }
    return set->second;
}

QueueCourse::Request QueueCourse::request_of(const Job& job, const NodeSet& nodes)
{
    Request request;
    request.nodes = &nodes;
    request.least = static_cast<std::size_t>(std::max(1, job.size.nodes));
    std::size_t most = 0;
    for (const std::uint64_t word : nodes) {
        most += static_cast<std::size_t>(std::popcount(word));
    }
    most = std::min(most, static_cast<std::size_t>(std::max(1, most_nodes(job))));
    for (std::size_t count = request.least; count <= std::max(request.least, most); ++count) {
        request.needs.push_back(m_nodes.need_of(job, static_cast<int>(count)));
    }
    request.can_start = could_ever(request);
    return request;
}

bool QueueCourse::could_ever(const Request& request) const
{
    std::size_t count = request.least;
    std::vector<Part> parts;
    for (const NodeResources::Need& need : request.needs) {
        std::size_t fitting = 0;
        any_of_both(*request.nodes, *request.nodes, [&](Node node) {
            fitting += m_nodes.could_fit(node, need, parts) ? 1 : 0;
            return false;
        });
        if (fitting >= count++) {
            return true;
        }
    }
    return false;
}

} // namespace gpuq
