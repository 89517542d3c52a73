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
        , m_old(world.machine.settings.release < 2011) // every window has its own start
    {
    }

    NodeSet now(const Need& need, const NodeSet& allowed) const
    {
        return m_world.placer.choose(need, allowed, m_world.spaces);
    }

    /// `enough` is the departure after which enough nodes of `allowed` are free. A slot after
    /// `until` has no nodes.
    Slot after(const Departure& enough, const Need& need, const NodeSet& allowed, Seconds until)
    {
        const Departure last = end_of_window(enough, allowed, until);
        const Seconds start = std::max(last.ends_by, m_world.now + Seconds{1});
        if (last.ends_by > until) {
            return {start, {}};
        }
        m_spaces = m_world.spaces;
        allowed.for_each(
            [&](std::size_t node) { m_world.departures.return_until(last, node, m_spaces[node]); });
        return {start, m_world.placer.choose(need, allowed, m_spaces)};
    }

private:
    /// The last departure from `allowed` in the window that `enough` belongs to; any one after
    /// `until` if it is later.
    Departure end_of_window(const Departure& enough, const NodeSet& allowed, Seconds until) const
    {
        const auto& running = m_world.running;
        Seconds window{30};
        Seconds from = k_never;
        Departure last = enough.ends_by > until ? enough : k_departed;
        for (std::size_t i = 0; last < enough && last.ends_by <= until;) {
            i = next_on(i, allowed);
            if (from == k_never || m_old) {
                const Seconds first = running[i].departure.ends_by;
                from = m_old ? first : next_on_clock(first, window);
            }
            i = last_of_window(i, from + window, allowed);
            last = running[i++].departure;
            do {
                window *= 2;
            } while (!m_old && i < running.size() && running[i].departure.ends_by > from + window);
        }
        return last;
    }

    /// The first link from `i` on that has nodes of `allowed`; the number of links if there is
    /// none.
    std::size_t next_on(std::size_t i, const NodeSet& allowed) const
    {
        const auto& running = m_world.running;
        while (i < running.size() && !is_on(running[i], allowed)) {
            ++i;
        }
        return i;
    }

    /// Slurm checks for the end of a window only after a link on nodes of `allowed`, so that the
    /// next one beyond it belongs to it, too, unless it comes after another link.
    std::size_t last_of_window(std::size_t first, Seconds end, const NodeSet& allowed) const
    {
        const auto& running = m_world.running;
        const auto beyond =
            std::partition_point(running.begin(), running.end(), [&](const Running& each) {
                return each.departure.ends_by <= end;
            });
        const auto within = static_cast<std::size_t>(beyond - running.begin());
        std::size_t last = next_on(std::max(first, within > 0 ? within - 1 : 0), allowed);
        while (last == running.size() || !is_on(running[last], allowed)) {
            --last; // none follows: the last one there is
        }
        return last;
    }

    bool is_on(const Running& each, const NodeSet& allowed) const
    {
        return each.node >= 0 ? allowed.test(static_cast<std::size_t>(each.node))
                              : (m_world.links[each.departure.link].nodes & allowed).any();
    }

    /// The next multiple of `step` on Slurm's clock.
    Seconds next_on_clock(Seconds moment, Seconds step) const
    {
        return moment + step - (moment + m_world.machine.settings.timing.clock) % step;
    }

    const World& m_world;
    bool m_old;
    std::vector<FreeSpace> m_spaces;
};

/// One backfill cycle.
class Cycle {
public:
    explicit Cycle(World& world)
        : m_world(world)
        , m_rules(world.machine.settings.backfill)
        , m_bookings(world.now, m_rules.window, m_rules.resolution, world.machine.nodes.size(),
                     world.machine.settings.timing.clock)
        , m_will_run(world)
        , m_beyond(world.now + std::max(m_rules.window, m_rules.resolution))
        , m_floors(world.shapes.size())
        , m_hopeless(world.shapes.size(), k_never)
        , m_full(world.shapes.size(), k_never)
        , m_evictable(world.shapes.size())
        , m_found(world.shapes.size())
    {
    }

    Passed run()
    {
        ++m_world.course.effort.backfill_cycles;
        m_passed.took = duration();
        std::size_t end = most_tested();
        for (std::size_t i = 0; i < end; ++i) {
            m_world.links[m_world.queue[i].link].planned = Seconds{0};
        }
        std::optional<std::uint64_t> known; // the last entry might start, as of this change
        for (std::size_t i = 0; i < end; ++i) {
            // Entries behind the last one that might start now need no plan, because a plan only
            // delays entries behind it.
            while (known != m_changes && end > i && !might_start(m_world.queue[end - 1])) {
                --end;
            }
            known = m_changes;
            if (i < end) {
                consider(m_world.queue[i]);
            }
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
        const std::size_t most = most_tested();
        for (std::size_t i = 0; each.count() > 0 && i < most; ++i) {
            all += is_one_too_many(m_world.links[m_world.queue[i].link]) ? each * 0 : each;
        }
        m_tested.clear();
        return all;
    }

    std::size_t most_tested() const
    {
        return std::min(m_world.queue.size(), static_cast<std::size_t>(m_rules.max_jobs_tested));
    }

    /// Whether the entry might start now, or preempt others. During a cycle, bookings are only
    /// added and free resources only taken: once it cannot, it cannot later, either, nor can a job
    /// of the same shape with a longer limit.
    bool might_start(const Entry& entry)
    {
        const Link& link = m_world.links[entry.link];
        const Seconds limit = link.claim.limit;
        if (link.state != State::pending || limit >= m_hopeless[entry.shape] ||
            !m_world.may_start(entry)) {
            return false;
        }
        const Shape& shape = m_world.shapes[entry.shape];
        const NodeSet open = m_world.open_nodes(shape, m_world.now, limit);
        const NodeSet nodes = m_bookings.gap(m_world.now, m_world.now + limit, open).nodes;
        NodeSet chosen;
        if (fits_from(entry.shape, nodes) == k_departed ||
            !victims_on(entry, nodes, chosen).empty()) {
            return true;
        }
        m_hopeless[entry.shape] = limit;
        return false;
    }

    Departure fits_from(std::uint32_t shape, const NodeSet& allowed)
    {
        return m_world.fit_times[shape].among(allowed, m_world.spaces, m_world.departures);
    }

    std::vector<std::uint32_t> victims_on(const Entry& entry, const NodeSet& allowed,
                                          NodeSet& nodes)
    {
        return might_evict(entry, allowed) ? victims(m_world, entry, allowed, nodes)
                                           : std::vector<std::uint32_t>{};
    }

    /// Whether the job would fit on enough nodes of `allowed` if all that it may preempt had left.
    bool might_evict(const Entry& entry, const NodeSet& allowed)
    {
        if (!m_world.machine.settings.preempts) {
            return false;
        }
        auto& [version, nodes] = m_evictable[entry.shape];
        if (version != m_world.departures.version()) {
            version = m_world.departures.version();
            nodes = evictable_nodes(m_world, entry);
        }
        return nodes.any() && (nodes & allowed).count() >=
                                  static_cast<std::size_t>(m_world.shapes[entry.shape].need.nodes);
    }

    void consider(const Entry& entry)
    {
        Link& link = m_world.links[entry.link];
        if (link.state != State::pending || is_one_too_many(link)) {
            return;
        }
        ++m_world.course.effort.backfill_tests;
        const bool only_now = m_rules.one_reservation_per_job && link.planned > Seconds{0};
        const std::optional<Slot> slot = only_now ? find(entry, only_now) : found_slot(entry);
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
            ++m_changes;
        }
    }

    /// As find(). In a long queue many jobs have the same shape and time limit, and the answer is
    /// the same until a job is booked, starts or is preempted.
    std::optional<Slot> found_slot(const Entry& entry)
    {
        const Seconds limit = m_world.links[entry.link].claim.limit;
        Found& found = m_found[entry.shape];
        if (found.changes != m_changes) {
            found.changes = m_changes;
            found.slots.clear();
        }
        const auto known = std::find_if(found.slots.begin(), found.slots.end(),
                                        [&](const auto& one) { return one.first == limit; });
        if (known != found.slots.end()) {
            return known->second;
        }
        return found.slots.emplace_back(limit, find(entry, false)).second;
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
        ++m_changes;
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
        const bool is_full = !only_now && limit >= m_full[entry.shape];
        if (is_full && !m_world.plan_matters[entry.shape]) {
            return std::nullopt;
        }
        bool fills = !only_now && !is_full && m_world.machine.reservations.empty() &&
                     limit >= m_rules.resolution * 2;
        std::optional<Seconds> from = only_now ? m_world.now : floor_of(entry.shape, limit);
        while (from) {
            const Seconds start = *from;
            const NodeSet wanted = m_world.open_nodes(shape, start, limit);
            const auto gap = m_bookings.gap(start, start + limit, wanted);
            from = sooner(gap.later, wanted == shape.nodes ? std::nullopt
                                                           : m_world.next_opening(shape, start));
            if (is_full && from) {
                continue;
            }
            const Seconds until = from.value_or(m_beyond);
            const Departure enough = fits_from(entry.shape, gap.nodes);
            fills = fills && (from || gap.to_end) && enough.ends_by > until &&
                    is_full_until(until, entry, gap.nearly);
            std::optional<Slot> slot = ask(entry, gap.nodes, enough, only_now, until);
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
                m_full[entry.shape] = fills ? limit : m_full[entry.shape];
                return slot;
            }
        }
        note(entry.shape, limit, std::nullopt, only_now);
        m_full[entry.shape] = fills ? limit : m_full[entry.shape];
        return std::nullopt;
    }

    /// Whether the entry can neither start on `nodes` until then nor preempt others on them.
    bool is_full_until(Seconds until, const Entry& entry, const NodeSet& nodes)
    {
        return fits_from(entry.shape, nodes).ends_by > until && !might_evict(entry, nodes);
    }

    /// The answer of Slurm about `allowed`. A slot after `until` is not needed, except that there
    /// is one: it has no nodes.
    std::optional<Slot> ask(const Entry& entry, const NodeSet& allowed, const Departure& enough,
                            bool only_now, Seconds until)
    {
        const Need& need = m_world.shapes[entry.shape].need;
        if (enough == k_departed) {
            return Slot{m_world.now, m_will_run.now(need, allowed)};
        }
        NodeSet nodes;
        if (!victims_on(entry, allowed, nodes).empty()) {
            return Slot{m_world.now, nodes};
        }
        if (only_now || enough == k_no_departure) {
            return std::nullopt;
        }
        return m_will_run.after(enough, need, allowed, until);
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
    Seconds m_beyond;                         ///< nothing is booked after this time
    std::vector<std::vector<Floor>> m_floors; ///< by shape
    std::vector<Seconds> m_hopeless; ///< by shape: the shortest limit that cannot start now
    // Once no job of a shape with some limit can be booked before the end of the window, none with
    // the same or a longer limit can, because in a cycle bookings are only added and resources only
    // taken.
    std::vector<Seconds> m_full; ///< by shape: the shortest such limit
    /// By shape: the nodes where jobs might be preempted for it, and Departures::version().
    std::vector<std::pair<std::uint64_t, NodeSet>> m_evictable;
    std::vector<int> m_tested; ///< by user
    /// Slots by time limit, found since this change.
    struct Found {
        std::uint64_t changes = 0;
        std::vector<std::pair<Seconds, std::optional<Slot>>> slots;
    };
    std::vector<Found> m_found;  ///< by shape
    std::uint64_t m_changes = 0; ///< bookings, starts and preemptions
    Passed m_passed;
};

} // namespace

Passed backfill_cycle(World& world)
{
    return Cycle(world).run();
}

} // namespace gpuq::sim
