// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/fair_share.h"
#include "sim/limits.h"
#include "sim/placement.h"
#include "sim/simulate.h"

#include <limits>
#include <string>
#include <vector>

namespace gpuq::sim {

inline constexpr Seconds k_never{std::numeric_limits<std::int64_t>::max() / 4};

enum class State { pending, running, over };

/// One of a run's jobs, waiting or running.
struct Link {
    std::size_t job = 0;
    int number = 1;
    State state = State::pending;
    Seconds eligible{0};
    Seconds work{0}; ///< left to do
    const std::vector<int>* partitions = nullptr;
    Claim claim;
    int share = 0;     ///< its user in the fair tree
    double weight = 1; ///< of its GPUs, in fair share

    // Running:
    int partition = -1;
    Need need;
    NodeSet nodes;
    Seconds start{0};
    Seconds ends_by{0};       ///< start and limit: all that Slurm knows
    Seconds finish{k_never};  ///< when it really leaves
    bool cut = false;         ///< leaves before its work is done
    bool preempted = false;   ///< told to leave for a job of a higher tier
    Seconds charged_until{0}; ///< its use is in the fair tree up to here

    /// Backfill's plan in this cycle; none is zero.
    Seconds planned{0};
};

/// What a job needs of a partition: the same for all jobs alike.
struct Shape {
    int partition = 0;
    Need need;
    NodeSet nodes; ///< of the partition, of its model, of its reservation
    std::string model;
    std::optional<int> reservation; ///< the jobs' own

    bool operator==(const Shape&) const = default;
};

/// A waiting link in one of its partitions, as the scheduler's queue holds it.
struct Entry {
    int tier = 0;
    std::uint32_t priority = 0;
    Seconds submit{0};
    std::uint64_t id = 0;
    std::uint32_t link = 0;
    std::uint32_t shape = 0;
    int position = 0;  ///< in the job's list of partitions
    int share = 0;     ///< of its user in the fair tree
    bool aged = false; ///< its age counts in full: it gets no older
};

/// The order in which both schedulers look: tier, priority, submission, id, place in the
/// job's list.
bool goes_before(const Entry& a, const Entry& b);

/// Everything that changes while time passes.
class World {
public:
    World(const Machine& machine, const std::vector<Job>& jobs);

    const Machine& machine;
    const std::vector<Job>& jobs;
    Seconds now{0};

    Placer placer;
    std::vector<Room> rooms;
    Limits limits;
    FairShare fair;
    std::vector<Link> links;
    std::vector<Shape> shapes;
    std::vector<Entry> queue;           ///< sorted by goes_before()
    std::vector<std::uint32_t> running; ///< links by `ends_by`
    std::vector<NodeSet> partition_nodes;
    Course course;

    /// Queues a run's first job, or refuses it.
    void submit(std::size_t job);
    /// Puts a link that has become eligible into the queue.
    void enqueue(std::uint32_t link);
    /// Starts a link of the queue. Its entries stay there until drop_started().
    void start(const Entry& entry, const NodeSet& nodes);
    void drop_started();
    /// Takes a running link off its nodes and settles how the run goes on. The link that follows,
    /// not yet in the queue.
    std::optional<std::uint32_t> end(std::uint32_t link);

    bool may_start(const Entry& entry) const;
    /// Nodes of the shape that no reservation keeps from a job of this length that starts at
    /// `start`.
    NodeSet open_nodes(const Shape& shape, Seconds start, Seconds limit) const;
    /// The next moment after `start` at which a reservation that keeps nodes from it ends.
    std::optional<Seconds> next_opening(const Shape& shape, Seconds start) const;
    /// The next tick of the loop that finds time limits, at or after `moment`.
    Seconds next_check(Seconds moment) const;

    /// Charges what runs, lets use fade, and gives every waiting job its priority anew. Whether
    /// that changed their order.
    bool recalculate();

private:
    /// Whether the scheduler has tried to place a job.
    enum class Looked { never, before };
    bool reprioritise();
    std::uint32_t priority_of(const Link& link, const Shape& shape, Looked looked);
    void charge_running();
    std::uint32_t shape_for(const Shape& shape);
    std::optional<Shape> shape_in(int partition, const Link& link) const;
    bool may_use(int partition, const Link& link) const;
    Link first_link(std::size_t job);
    std::uint32_t add(Link link);
    std::optional<std::uint32_t> next_after(std::uint32_t link);
    void charge(Link& link);
    Seconds finish_of(Link& link) const;
    void record(const Link& link);

    std::vector<std::string> m_users;
    std::vector<std::string> m_accounts;
    bool m_some_age = false;     ///< some entry of the queue still gets older
    bool m_some_started = false; ///< since drop_started()
    int m_cluster_cpus = 0;
    int m_highest_factor = 0;
    int m_highest_qos = 0;
    Seconds m_last_calc{0};
};

} // namespace gpuq::sim
