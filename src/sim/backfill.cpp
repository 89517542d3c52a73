// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/bookings.h"
#include "sim/schedulers.h"

#include <algorithm>

namespace gpuq::sim {
namespace {

/// The nodes on which a job could run, and the time.
struct Slot {
    Seconds start{0};
    NodeSet nodes;
};

/// The answer of select/cons_tres to "will it run on these nodes": now, or after the time limit of
/// one of the running jobs. Ends are combined in windows of increasing length, as in Slurm.
class WillRun {
public:
    explicit WillRun(const World& world)
        : m_world(world)
    {
    }

    std::optional<Slot> ask(const Need& need, const NodeSet& allowed, bool only_now)
    {
        const NodeSet nodes = m_world.placer.choose(need, allowed, m_world.spaces);
        if (nodes.any()) {
            return Slot{m_world.now, nodes};
        }
        return only_now ? std::nullopt : after_others(need, allowed);
    }

private:
    std::optional<Slot> after_others(const Need& need, const NodeSet& allowed)
    {
        m_spaces = m_world.spaces;
        const auto& running = m_world.running;
        const bool old = m_world.machine.settings.release < 2011; // every window has its own start
        Seconds window{30};
        Seconds from = k_never;
        for (std::size_t i = 0; i < running.size();) {
            const Link* last = nullptr;
            from = old ? k_never : from;
            while (i < running.size()) {
                const Link& link = m_world.links[running[i++]];
                if ((link.nodes & allowed).none()) {
                    continue; // no window check: the next link on these nodes belongs to it
                }
                if (from == k_never) {
                    from = old ? link.ends_by : next_on_clock(link.ends_by, window);
                }
                change(m_spaces, link.need, link.nodes, 1);
                last = &link;
                if (i < running.size() && m_world.links[running[i]].ends_by > from + window) {
                    break;
                }
            }
            if (!last) {
                break;
            }
            do {
                window *= 2;
            } while (!old && i < running.size() &&
                     m_world.links[running[i]].ends_by > from + window);
            const NodeSet nodes = m_world.placer.choose(need, allowed, m_spaces);
            if (nodes.any()) {
                return Slot{std::max(last->ends_by, m_world.now + Seconds{1}), nodes};
            }
        }
        return std::nullopt;
    }

    /// The next multiple of `step` on Slurm's clock.
    Seconds next_on_clock(Seconds moment, Seconds step) const
    {
        return moment + step - (moment + m_world.machine.settings.timing.clock) % step;
    }

    const World& m_world;
    std::vector<FreeSpace> m_spaces;
};

/// One backfill cycle.
class Cycle {
public:
    explicit Cycle(World& world)
        : m_world(world)
        , m_rules(world.machine.settings.backfill)
        , m_bookings(world.now, m_rules.window, m_rules.resolution, NodeSet{}.set(),
                     world.machine.settings.timing.clock)
        , m_will_run(world)
        , m_floors(world.shapes.size())
    {
    }

    Passed run()
    {
        ++m_world.course.effort.backfill_cycles;
        m_passed.took = duration();
        const std::size_t end = end_of_hope();
        for (std::size_t i = 0; i < end; ++i) {
            m_world.links[m_world.queue[i].link].planned = Seconds{0};
        }
        for (std::size_t i = 0; i < end; ++i) {
            consider(m_world.queue[i]);
        }
        m_world.drop_started();
        return std::move(m_passed);
    }

private:
    /// The time that Slurm would take to test the queue. The simulation tests only the part of it
    /// in which a job might start.
    std::chrono::microseconds duration()
    {
        const auto each = m_world.machine.settings.timing.backfill_test;
        std::chrono::microseconds all{0};
        const std::size_t most =
            std::min(m_world.queue.size(), static_cast<std::size_t>(m_rules.max_jobs_tested));
        for (std::size_t i = 0; each.count() > 0 && i < most; ++i) {
            all += is_one_too_many(m_world.links[m_world.queue[i].link]) ? each * 0 : each;
        }
        m_tested.clear();
        return all;
    }

    /// The position after the last entry that might start now. Later entries need no plan, because
    /// a plan only delays entries behind it.
    std::size_t end_of_hope() const
    {
        std::vector<signed char> known(m_world.shapes.size(), -1);
        const std::size_t most =
            std::min(m_world.queue.size(), static_cast<std::size_t>(m_rules.max_jobs_tested));
        std::size_t end = most;
        for (; end > 0; --end) {
            const Entry& entry = m_world.queue[end - 1];
            signed char& fits = known[entry.shape];
            if (fits < 0) {
                fits = might_fit(entry) ? 1 : 0;
            }
            if (fits > 0 && m_world.may_start(entry)) {
                break;
            }
        }
        return end;
    }

    bool might_fit(const Entry& entry) const
    {
        const Shape& shape = m_world.shapes[entry.shape];
        if (m_world.placer.possible(shape.need, shape.nodes, m_world.spaces)) {
            return true;
        }
        NodeSet nodes;
        return m_world.machine.settings.preempts &&
               !victims(m_world, entry, shape.nodes, nodes).empty();
    }

    void consider(const Entry& entry)
    {
        Link& link = m_world.links[entry.link];
        if (link.state != State::pending || is_one_too_many(link)) {
            return;
        }
        ++m_world.course.effort.backfill_tests;
        const bool only_now = m_rules.one_reservation_per_job && link.planned > Seconds{0};
        const std::optional<Slot> slot = find(entry, only_now);
        if (!slot || (slot->start > m_world.now && only_now)) {
            return;
        }
        // Limits are checked only now. A job that exceeds one is not booked, but gets a planned
        // start; with one reservation per job, this restricts its other partitions to an immediate
        // start.
        const bool allowed = m_world.may_start(entry);
        if (slot->start <= m_world.now && (!allowed || start(entry, *slot))) {
            return;
        }
        link.planned = link.planned > Seconds{0} ? std::min(link.planned, slot->start)
                                                 : std::max(slot->start, Seconds{1});
        if (allowed && slot->start <= m_world.now + m_rules.window) {
            m_bookings.book(slot->start, slot->start + link.claim.limit, slot->nodes);
        }
    }

    /// Whether as many jobs of its user have been tested as bf_max_job_user allows; counts the job.
    bool is_one_too_many(const Link& link)
    {
        const auto user = static_cast<std::size_t>(link.claim.user);
        if (m_rules.max_jobs_per_user == 0) {
            return false;
        }
        if (user >= m_tested.size()) {
            m_tested.resize(user + 1);
        }
        return m_tested[user]++ >= m_rules.max_jobs_per_user;
    }

    /// Starts the job on its slot's nodes and returns true; otherwise preempts the jobs on them, so
    /// that the nodes are booked in the meantime.
    bool start(const Entry& entry, const Slot& slot)
    {
        const Need& need = m_world.shapes[entry.shape].need;
        if (m_world.placer.possible(need, slot.nodes, m_world.spaces)) {
            m_world.start(entry, slot.nodes);
            m_passed.started.push_back(entry.link);
            return true;
        }
        NodeSet nodes;
        const auto notified = evict(m_world, victims(m_world, entry, slot.nodes, nodes));
        m_passed.evicted.insert(m_passed.evicted.end(), notified.begin(), notified.end());
        return false;
    }

    /// The first slot that does not conflict with a booking.
    std::optional<Slot> find(const Entry& entry, bool only_now)
    {
        const Shape& shape = m_world.shapes[entry.shape];
        const Seconds limit = m_world.links[entry.link].claim.limit;
        std::optional<Seconds> from = only_now ? m_world.now : floor_of(entry.shape, limit);
        while (from) {
            const Seconds start = *from;
            const NodeSet wanted = m_world.open_nodes(shape, start, limit);
            const auto gap = m_bookings.gap(start, start + limit, wanted);
            from = sooner(gap.later, wanted == shape.nodes ? std::nullopt
                                                           : m_world.next_opening(shape, start));
            std::optional<Slot> slot = ask(entry, gap.nodes, only_now);
            if (slot) {
                slot->start = std::max(slot->start, start);
                if (from && slot->start > *from) {
                    slot.reset(); // other nodes become free earlier
                } else if (slot->start > m_world.now && overlaps(*slot, limit)) {
                    from = slot->start > start ? slot->start : from;
                    slot.reset();
                }
            }
            if (slot || only_now) {
                note(entry.shape, limit, slot ? std::optional(start) : std::nullopt, only_now);
                return slot;
            }
        }
        note(entry.shape, limit, std::nullopt, only_now);
        return std::nullopt;
    }

    std::optional<Slot> ask(const Entry& entry, const NodeSet& allowed, bool only_now)
    {
        const Need& need = m_world.shapes[entry.shape].need;
        if (allowed.count() < static_cast<std::size_t>(need.nodes)) {
            return std::nullopt;
        }
        if (m_world.machine.settings.preempts) {
            NodeSet nodes;
            if (!m_world.placer.possible(need, allowed, m_world.spaces) &&
                !victims(m_world, entry, allowed, nodes).empty()) {
                return Slot{m_world.now, nodes};
            }
        }
        return m_will_run.ask(need, allowed, only_now);
    }

    bool overlaps(const Slot& slot, Seconds limit) const
    {
        return m_bookings.overlaps(m_bookings.rounded(slot.start),
                                   m_bookings.rounded(slot.start + limit), slot.nodes);
    }

    static std::optional<Seconds> sooner(std::optional<Seconds> a, std::optional<Seconds> b)
    {
        return a && b ? std::min(*a, *b) : a ? a : b;
    }

    // During a cycle, bookings are only added. So a job can't start before a job of the same shape
    // with the same or a shorter limit, and earlier times need not be tested.
    struct Floor {
        Seconds limit;
        std::optional<Seconds> from; ///< nullopt: no slot was found
    };

    std::optional<Seconds> floor_of(std::uint32_t shape, Seconds limit) const
    {
        Seconds from = m_world.now;
        for (const Floor& floor : m_floors[shape]) {
            if (floor.limit <= limit) {
                if (!floor.from) {
                    return std::nullopt;
                }
                from = std::max(from, *floor.from);
            }
        }
        return from;
    }

    void note(std::uint32_t shape, Seconds limit, std::optional<Seconds> from, bool only_now)
    {
        if (only_now || is_known(shape, limit, from)) {
            return;
        }
        auto& floors = m_floors[shape];
        std::erase_if(floors, [&](const Floor& floor) {
            return floor.limit >= limit && floor.from && (!from || *floor.from <= *from);
        });
        floors.push_back({limit, from});
    }

    bool is_known(std::uint32_t shape, Seconds limit, std::optional<Seconds> from) const
    {
        const std::optional<Seconds> floor = floor_of(shape, limit);
        return !floor || (from && *from <= *floor);
    }

    World& m_world;
    const Backfill& m_rules;
    Bookings m_bookings;
    WillRun m_will_run;
    std::vector<std::vector<Floor>> m_floors; ///< by shape
    std::vector<int> m_tested;                ///< by user
    Passed m_passed;
};

} // namespace

Passed backfill_cycle(World& world)
{
    return Cycle(world).run();
}

} // namespace gpuq::sim
