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

/// What will happen; in this order when at the same moment.
struct Event {
    enum class Kind { finish, eligible, wake };
    Seconds time{0};
    bool late = false; ///< after the main loop's turn in that second
    Kind kind = Kind::wake;
    std::uint32_t link = 0;

    bool operator>(const Event& other) const
    {
        return std::tie(time, late, kind, link) >
               std::tie(other.time, other.late, other.kind, other.link);
    }
};

/// The clock, and who acts when.
class Simulation {
public:
    Simulation(const Machine& machine, const std::vector<Job>& jobs)
        : m_world(machine, jobs)
        , m_timing(machine.settings.timing)
        , m_order(jobs.size())
    {
        std::iota(m_order.begin(), m_order.end(), std::size_t{0});
        const auto place = [&](std::size_t job) {
            return std::make_tuple(jobs[job].submit, seen_after(job) > Seconds{0}, jobs[job].id);
        };
        std::stable_sort(m_order.begin(), m_order.end(), [&](std::size_t a, std::size_t b) {
            return place(a) < place(b);
        });
        for (const Reservation& reservation : machine.reservations) {
            if (!reservation.floats) {
                m_events.push({reservation.start, false, Event::Kind::wake, 0});
                m_events.push({reservation.end, false, Event::Kind::wake, 0});
            }
        }
    }

    Course run()
    {
        for (Seconds next = next_moment(); next < k_never; next = next_moment()) {
            m_world.now = std::max(m_world.now, next);
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
            next = std::min(next, m_events.top().time);
        }
        if (m_submitted < m_order.size()) {
            next = std::min(next, m_world.jobs[m_order[m_submitted]].submit);
        }
        const bool more_to_come = !m_world.running.empty() || m_submitted < m_order.size();
        return more_to_come && !m_world.queue.empty() ? std::min(next, m_calc_due) : next;
    }

    /// What happens in a second before or after the main loop's turn.
    void finish_and_submit(bool late)
    {
        while (!m_events.empty() && m_events.top().time <= m_world.now &&
               (late || !m_events.top().late)) {
            const Event event = m_events.top();
            m_events.pop();
            if (event.kind == Event::Kind::finish) {
                finish(event.link, late);
            } else if (event.kind == Event::Kind::eligible) {
                catch_up();
                m_world.enqueue(event.link);
                look_at_new(Seconds{late ? 1 : 0});
            } else {
                look_at_rest(late);
            }
        }
        for (; m_submitted < m_order.size(); ++m_submitted) {
            const std::size_t job = m_order[m_submitted];
            const Seconds seen = seen_after(job);
            if (m_world.jobs[job].submit > m_world.now || (seen > Seconds{0} && !late)) {
                break;
            }
            catch_up();
            m_world.submit(job);
            look_at_new(seen);
        }
    }

    void finish(std::uint32_t link, bool late)
    {
        const Link& ended = m_world.links[link];
        if (ended.state != State::running || freed(link).time != m_world.now) {
            return; // Preempted since: it has left, or will before.
        }
        if (const auto next = m_world.end(link)) {
            m_events.push({m_world.links[*next].eligible, false, Event::Kind::eligible, *next});
        }
        look_at_rest(late);
    }

    void look_at_rest(bool late)
    {
        m_main_due = std::min(m_main_due, m_world.now + Seconds{late ? 1 : 0});
        something_changed();
    }

    void look_at_new(Seconds after)
    {
        m_main_due = std::min(m_main_due, std::max(m_world.now + after,
                                                   m_last_main + m_timing.batch_sched_delay));
        something_changed();
    }

    /// When the main loop knows of a job, from its submission.
    Seconds seen_after(std::size_t job) const
    {
        return whole_seconds(m_timing.submission, m_world.jobs[job].id);
    }

    /// Backfill sleeps until something has changed, and for its interval at least.
    void something_changed()
    {
        const Backfill& rules = m_world.machine.settings.backfill;
        if (rules.on) {
            m_backfill_due = std::min(m_backfill_due, std::max(m_world.now + Seconds{1},
                                                               m_last_backfill + rules.interval));
        }
    }

    /// While nobody waits priorities are not computed; now somebody does.
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

    /// The next moment after now that is `phase` past a multiple of `period`.
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
        if (!m_world.queue.empty()) {
            m_last_backfill = m_world.now;
            const Passed passed = backfill_cycle(m_world);
            m_backfill_took += passed.took;
            const Seconds whole = std::chrono::floor<Seconds>(m_backfill_took);
            m_last_backfill += whole;
            m_backfill_took -= whole;
            follow(passed);
            if (m_world.machine.settings.release < 1808 && !m_world.queue.empty()) {
                m_backfill_due = m_last_backfill + m_world.machine.settings.backfill.interval;
            }
        }
    }

    /// When its nodes take other jobs. Backfill may find them before the main loop does.
    Event freed(std::uint32_t link) const
    {
        const Seconds seen = whole_seconds(m_timing.completion, link);
        const Seconds before = std::max(seen - Seconds{1}, Seconds{0});
        return {m_world.links[link].finish + before, seen > Seconds{0}, Event::Kind::finish, link};
    }

    void follow(const Passed& passed)
    {
        for (const std::uint32_t link : passed.started) {
            m_events.push(freed(link));
            if (m_world.machine.settings.preempts && m_timing.preempt_exempt > Seconds{0}) {
                m_events.push(
                    {m_world.now + m_timing.preempt_exempt, false, Event::Kind::wake, link});
            }
        }
        for (const std::uint32_t link : passed.evicted) {
            m_events.push(freed(link));
        }
    }

    World m_world;
    const Timing& m_timing;
    std::vector<std::size_t> m_order; ///< jobs by submission
    std::size_t m_submitted = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> m_events;
    Seconds m_main_due = k_never;
    Seconds m_full_due = k_never;
    Seconds m_backfill_due = k_never;
    Seconds m_calc_due = m_world.machine.settings.weights.calc_phase;
    Seconds m_last_main = -k_never;
    Seconds m_last_backfill = -k_never;
    std::chrono::microseconds m_backfill_took{0}; ///< not yet in m_last_backfill
    /// Some limit counts time still to run: it lets go of jobs while nothing happens.
    bool m_time_frees =
        std::any_of(m_world.machine.qos.begin(), m_world.machine.qos.end(),
                    [](const Qos& qos) { return qos.group_gpu_minutes.has_value(); });
};

} // namespace

Result<Course> simulate(const Machine& machine, const std::vector<Job>& jobs)
{
    TRY(check(machine));
    TRY(check(machine, jobs));
    return Simulation(machine, jobs).run();
}

} // namespace gpuq::sim
