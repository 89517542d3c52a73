// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/simulate.h"

#include "sim/schedulers.h"
#include "sim/world.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

namespace gpuq::sim {
namespace {

/// Within a second, the main loop runs first, then backfill.
struct Moment {
    Seconds time{0};
    bool late = false; ///< between the two

    bool operator<(const Moment& other) const
    {
        return std::tie(time, late) < std::tie(other.time, other.late);
    }
};

/// A future event. Events of the same moment are processed in this order.
struct Event {
    enum class Kind { finish, eligible, wake };
    Moment moment;
    Kind kind = Kind::wake;
    std::uint32_t link = 0;
    Seconds finish = k_never; ///< the link's, as planned when the event was created

    bool operator>(const Event& other) const
    {
        return std::tie(moment, kind, link) > std::tie(other.moment, other.kind, other.link);
    }
};

/// An event of the machine: other hours, or a node that fails or returns.
struct Happening {
    enum class Kind { node_returns, node_fails, hours };
    Seconds time{0};
    Kind kind = Kind::hours;
    std::size_t index = 0; ///< of the hours, or of the node

    bool operator<(const Happening& other) const
    {
        return std::tie(time, kind, index) < std::tie(other.time, other.kind, other.index);
    }
};

std::vector<Happening> happenings_of(const Machine& machine)
{
    std::vector<Happening> all;
    for (const HoursFrom& change : machine.changes) {
        all.push_back({change.time, Happening::Kind::hours, change.hours});
    }
    for (const Outage& outage : machine.outages) {
        const auto node = static_cast<std::size_t>(outage.node);
        all.push_back({outage.start, Happening::Kind::node_fails, node});
        all.push_back({outage.end, Happening::Kind::node_returns, node});
    }
    std::sort(all.begin(), all.end());
    return all;
}

bool has_limit_of_time(const std::vector<Qos>& qos)
{
    return std::any_of(qos.begin(), qos.end(), [](const Qos& one) {
        return one.gpu_minutes_per_user || one.gpu_minutes_per_account || one.group_gpu_minutes;
    });
}

/// The clock: advances from one second in which something is due to the next. Each second is
/// processed in this order: events of the machine, the ends and submissions that the main
/// loop sees, priorities, the main loop, later ends and submissions, backfill.
class Simulation {
public:
    Simulation(const Machine& machine, const std::vector<Job>& jobs)
        : m_world(machine, jobs)
        , m_timing(machine.settings.timing)
        , m_order(jobs.size())
        , m_happenings(happenings_of(machine))
    {
        std::iota(m_order.begin(), m_order.end(), std::size_t{0});
        const auto place = [&](std::size_t job) {
            const bool late = whole_seconds(m_timing.submission, jobs[job].id) > Seconds{0};
            return std::make_tuple(
                jobs[job].submit,
                jobs[job].submit_part.value_or(std::chrono::milliseconds{late ? 1 : 0}),
                jobs[job].id);
        };
        std::stable_sort(m_order.begin(), m_order.end(),
                         [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
        for (const Reservation& reservation : machine.reservations) {
            if (!reservation.floats) {
                m_events.push({{reservation.start}, Event::Kind::wake});
                m_events.push({{reservation.end}, Event::Kind::wake});
            }
        }
    }

    Course run()
    {
        for (Seconds next = next_moment(); next < k_never; next = next_moment()) {
            m_world.now = std::max(m_world.now, next);
            happen();
            finish_and_submit(false);
            recalculate();
            pass();
            finish_and_submit(true);
            backfill();
        }
        return std::move(m_world.course);
    }

private:
    Seconds next_moment() const
    {
        Seconds next = std::min({m_main_due, m_full_due, m_backfill_due});
        if (!m_events.empty()) {
            next = std::min(next, m_events.top().moment.time);
        }
        if (m_submitted < m_order.size()) {
            next = std::min(next, submitted(m_order[m_submitted]).time);
        }
        const bool more_to_come = !m_world.running.empty() || m_submitted < m_order.size();
        const bool matters = more_to_come || !m_world.queue.empty() || !m_world.held.empty();
        if (matters && m_happened < m_happenings.size()) {
            next = std::min(next, m_happenings[m_happened].time);
        }
        return more_to_come && !m_world.queue.empty() ? std::min(next, m_calc_due) : next;
    }

    void happen()
    {
        for (; m_happened < m_happenings.size() && m_happenings[m_happened].time <= m_world.now;
             ++m_happened) {
            const Happening& happening = m_happenings[m_happened];
            if (happening.kind == Happening::Kind::hours) {
                catch_up();
                for (const std::uint32_t link :
                     m_world.change_hours(m_world.machine.hours[happening.index])) {
                    m_events.push(end_of(link, {}));
                }
            } else if (happening.kind == Happening::Kind::node_fails) {
                for (const std::uint32_t link : m_world.fail(static_cast<int>(happening.index))) {
                    end(link);
                }
            } else {
                m_world.restore(static_cast<int>(happening.index));
            }
            schedule_rest(false);
        }
    }

    /// Processes the events of a second before or after the main loop's pass.
    void finish_and_submit(bool late)
    {
        const Moment until{m_world.now, late};
        while (!m_events.empty() && !(until < m_events.top().moment)) {
            const Event event = m_events.top();
            m_events.pop();
            if (event.kind == Event::Kind::finish) {
                finish(event, late);
            } else if (event.kind == Event::Kind::eligible) {
                catch_up();
                m_world.enqueue(event.link);
                schedule_new(late);
            } else {
                schedule_rest(late);
            }
        }
        for (; m_submitted < m_order.size(); ++m_submitted) {
            if (until < submitted(m_order[m_submitted])) {
                break;
            }
            catch_up();
            m_world.submit(m_order[m_submitted]);
            schedule_new(late);
        }
    }

    void finish(const Event& event, bool late)
    {
        if (m_world.links.is_over(event.link) || m_world.links[event.link].finish != event.finish) {
            return; // preempted since: it has left, or will leave earlier
        }
        end(event.link);
        schedule_rest(late);
    }

    void end(std::uint32_t link)
    {
        if (const auto next = m_world.end(link)) {
            m_events.push({{m_world.links[*next].eligible}, Event::Kind::eligible, *next});
        }
    }

    void schedule_rest(bool late)
    {
        m_main_due = std::min(m_main_due, m_world.now + Seconds{late ? 1 : 0});
        something_changed();
    }

    void schedule_new(bool late)
    {
        m_main_due = std::min(m_main_due, std::max(m_world.now + Seconds{late ? 1 : 0},
                                                   m_last_main + m_timing.batch_sched_delay));
        something_changed();
    }

    /// The moment of an event that happens `part` after a whole second.
    Moment moment(Seconds second, std::chrono::milliseconds part) const
    {
        const Seconds whole = std::chrono::floor<Seconds>(part);
        part -= whole;
        const bool is_after_backfill = part > m_last_backfill - floor(m_last_backfill);
        return {second + whole + Seconds{is_after_backfill ? 1 : 0},
                part.count() > 0 && !is_after_backfill};
    }

    /// The moment of an event of which only the second is known; the main loop sees it `after`
    /// seconds later.
    static Moment seen(Seconds second, Seconds after)
    {
        const bool late = after > Seconds{0};
        return {second + after - Seconds{late ? 1 : 0}, late};
    }

    Moment submitted(std::size_t index) const
    {
        const Job& job = m_world.jobs[index];
        return job.submit_part ? moment(job.submit, *job.submit_part)
                               : seen(job.submit, whole_seconds(m_timing.submission, job.id));
    }

    /// Backfill sleeps until something has changed, and at least for its interval.
    void something_changed()
    {
        if (m_world.machine.settings.backfill.on) {
            m_backfill_due = std::min(
                m_backfill_due, std::max(m_world.now + Seconds{1}, second_of_next_backfill()));
        }
    }

    /// While no job is pending, priorities are not computed; before one is queued, they must be.
    void catch_up()
    {
        if (m_world.queue.empty() && m_calc_due <= m_world.now) {
            m_world.recalculate();
            m_calc_due = next_calculation();
        }
    }

    void recalculate()
    {
        if (m_calc_due > m_world.now) {
            return;
        }
        m_calc_due = next_calculation();
        const bool reordered = m_world.recalculate();
        if (reordered || m_time_frees) {
            m_full_due = std::min(m_full_due, next_multiple(m_timing.sched_interval));
            something_changed();
        }
    }

    Seconds next_calculation() const
    {
        const Weights& weights = m_world.machine.settings.weights;
        return next_multiple(weights.calc_period, weights.calc_phase % weights.calc_period);
    }

    /// The next time after now that is `phase` past a multiple of `period`.
    Seconds next_multiple(Seconds period, Seconds phase = Seconds{0}) const
    {
        return (m_world.now - phase + period) / period * period + phase;
    }

    void pass()
    {
        const bool full = m_full_due <= m_world.now;
        if (!full && m_main_due > m_world.now) {
            return;
        }
        m_main_due = k_never;
        m_last_main = m_world.now;
        const Passed passed =
            main_pass(m_world, full ? std::nullopt : std::optional(m_timing.default_queue_depth));
        if (full) {
            m_full_due = k_never;
        }
        if (passed.stopped_early) {
            m_full_due = std::min(m_full_due, next_multiple(m_timing.sched_interval));
        }
        follow(passed);
    }

    void backfill()
    {
        if (m_backfill_due > m_world.now) {
            return;
        }
        m_backfill_due = k_never;
        // Also if no job is pending: the next cycle is an interval later.
        m_last_backfill = second_of_next_backfill() == m_world.now
                              ? m_last_backfill + m_world.machine.settings.backfill.interval
                              : m_world.now + (m_last_backfill - floor(m_last_backfill));
        if (!m_world.queue.empty()) {
            const Passed passed = backfill_cycle(m_world);
            follow(passed, m_last_backfill - floor(m_last_backfill));
            m_last_backfill += passed.took;
            if (m_world.machine.settings.release < 1808 && !m_world.queue.empty()) {
                m_backfill_due = second_of_next_backfill();
            }
        }
    }

    static Seconds floor(std::chrono::microseconds moment)
    {
        return std::chrono::floor<Seconds>(moment);
    }

    Seconds second_of_next_backfill() const
    {
        return floor(m_last_backfill + m_world.machine.settings.backfill.interval);
    }

    /// When the nodes of a link that started `part` after a whole second accept other jobs.
    Event end_of(std::uint32_t index, std::chrono::microseconds part) const
    {
        const Link& link = m_world.links[index];
        const auto known = m_world.jobs[link.job].duration_part;
        const Moment ends =
            known && !link.cut
                ? moment(link.finish, std::chrono::floor<std::chrono::milliseconds>(part + *known))
                : seen(link.finish, whole_seconds(m_timing.completion, index));
        return {ends, Event::Kind::finish, index, link.finish};
    }

    void follow(const Passed& passed, std::chrono::microseconds part = {})
    {
        for (const std::uint32_t link : passed.started) {
            m_events.push(end_of(link, part));
            if (m_world.machine.settings.preempts && m_timing.preempt_exempt > Seconds{0}) {
                m_events.push({{m_world.now + m_timing.preempt_exempt}, Event::Kind::wake, link});
            }
        }
        for (const std::uint32_t link : passed.evicted) {
            m_events.push(end_of(link, part));
        }
    }

    World m_world;
    const Timing& m_timing;
    std::vector<std::size_t> m_order; ///< jobs by submission
    std::size_t m_submitted = 0;
    std::vector<Happening> m_happenings; ///< by time
    std::size_t m_happened = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> m_events;
    Seconds m_main_due = k_never;
    Seconds m_full_due = k_never;
    Seconds m_backfill_due = k_never;
    Seconds m_calc_due = m_world.machine.settings.weights.calc_phase;
    Seconds m_last_main = -k_never;
    std::chrono::microseconds m_last_backfill =
        m_world.machine.settings.backfill.phase - m_world.machine.settings.backfill.interval;
    /// Some limit counts remaining run time: jobs may become able to start although nothing
    /// happens.
    bool m_time_frees =
        has_limit_of_time(m_world.machine.qos) ||
        std::any_of(m_world.machine.hours.begin(), m_world.machine.hours.end(),
                    [](const Hours& hours) { return has_limit_of_time(hours.qos); });
};

} // namespace

Result<Course> simulate(const Machine& machine, const std::vector<Job>& jobs)
{
    TRY(check(machine));
    TRY(check(machine, jobs));
    return Simulation(machine, jobs).run();
}

} // namespace gpuq::sim
