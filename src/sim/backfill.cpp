// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/bookings.h"
#include "sim/schedulers.h"

#include <algorithm>

namespace gpuq::sim {
namespace {

/// Where and when a job could run.
struct Slot {
    Seconds start{0};
    NodeSet nodes;
};

/// What select/cons_tres answers to "will it run, on these nodes": now, or after which of the
/// running jobs' limits. Ends are taken together in windows that grow, as there.
class WillRun {
public:
    explicit WillRun(const World& world)
        : m_world(world)
    {
    }

    std::optional<Slot> ask(const Need& need, const NodeSet& allowed, bool only_now)
    {
        const NodeSet nodes = m_world.placer.choose(need, allowed, m_world.rooms);
        if (nodes.any()) {
            return Slot{m_world.now, nodes};
        }
        return only_now ? std::nullopt : after_others(need, allowed);
    }

private:
    std::optional<Slot> after_others(const Need& need, const NodeSet& allowed)
    {
        m_rooms = m_world.rooms;
        const auto& running = m_world.running;
        const bool old = m_world.machine.settings.release < 2011; // Each window begins anew.
        Seconds window{30};
        Seconds from = k_never;
        for (std::size_t i = 0; i < running.size();) {
            const Link* last = nullptr;
            from = old ? k_never : from;
            while (i < running.size()) {
                const Link& link = m_world.links[running[i++]];
                if ((link.nodes & allowed).none()) {
                    continue; // Without a look at the window: the next one here belongs to it too.
                }
                if (from == k_never) {
                    from = old ? link.ends_by : next_on_clock(link.ends_by, window);
                }
                change(m_rooms, link.need, link.nodes, 1);
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
            const NodeSet nodes = m_world.placer.choose(need, allowed, m_rooms);
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
    std::vector<Room> m_rooms;
};

/// One cycle.
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
    /// How long Slurm would look at the queue. Here it is only looked at as far as there is hope.
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

    /// Behind the last entry that might start now: what comes after it needs no plan, as a plan
    /// only serves to keep those back that come later.
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
        if (m_world.placer.possible(shape.need, shape.nodes, m_world.rooms)) {
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
        // Limits are looked at only now. A job over one is not booked, but has a planned start, and
        // with one reservation for each job that closes its other partitions to more than a look.
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

    /// Whether its user has had as many looked at as bf_max_job_user allows; counts it if not.
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

    /// Starts it on its slot's nodes; or has others leave them, and books them meanwhile.
    bool start(const Entry& entry, const Slot& slot)
    {
        const Need& need = m_world.shapes[entry.shape].need;
        if (m_world.placer.possible(need, slot.nodes, m_world.rooms)) {
            m_world.start(entry, slot.nodes);
            m_passed.started.push_back(entry.link);
            return true;
        }
        NodeSet nodes;
        const auto told = evict(m_world, victims(m_world, entry, slot.nodes, nodes));
        m_passed.evicted.insert(m_passed.evicted.end(), told.begin(), told.end());
        return false;
    }

    /// The first slot that takes nothing from a booking.
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
                    slot.reset(); // Other nodes come free before.
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
            if (!m_world.placer.possible(need, allowed, m_world.rooms) &&
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

    // In one cycle bookings only become more. So a job can not start before one of the same shape
    // that is as short, and need not look there again.
    struct Floor {
        Seconds limit;
        std::optional<Seconds> from; ///< none: it found no slot at all
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
