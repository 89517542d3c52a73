// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/departures.h"
#include "sim/fair_share.h"
#include "sim/limits.h"
#include "sim/links.h"
#include "sim/pending_queue.h"
#include "sim/placement.h"
#include "sim/simulate.h"

#include <string>
#include <vector>

namespace gpuq::sim {

/// The requirements of a job in one partition, shared by all jobs with the same ones.
struct Shape {
    int partition = 0;
    Need need;
    NodeSet nodes; ///< of the partition, with its model and features, in its reservation
    std::string model;
    std::optional<int> reservation; ///< requested by the jobs

    bool operator==(const Shape&) const = default;
};

/// A running link, for backfill.
struct Running {
    Departure departure;
    int node = -1; ///< its only node; -1: it has several
};

/// Everything that changes over time.
class World {
public:
    World(const Machine& machine, const std::vector<Job>& jobs);

    Machine machine; ///< with the values of the current hours
    const std::vector<Job>& jobs;
    Seconds now{0};

    Placer placer;
    std::vector<FreeSpace> spaces;
    Limits limits;
    FairShare fair;
    Links links;
    std::vector<Shape> shapes;
    PendingQueue queue;
    /// Entries that cannot start at these hours: their partition is closed, or its time too short.
    std::vector<Entry> held;
    std::vector<Running> running;    ///< in the order of their departures
    Departures departures;           ///< of the running links
    std::vector<FitTimes> fit_times; ///< by shape
    /// By shape: whether backfill's plan for a job in it restricts its other partitions.
    std::vector<bool> plan_matters;
    std::vector<NodeSet> partition_nodes;
    Course course;

    /// Queues a run's first job, or refuses it.
    void submit(std::size_t job);
    /// Adds a link that has become eligible to the queue.
    void enqueue(std::uint32_t link);
    /// Starts a link of the queue. Its entries stay in the queue until drop_started().
    void start(const Entry& entry, const NodeSet& nodes);
    void drop_started();
    /// Removes a running link from its nodes and determines how the run continues. Returns the next
    /// link, which is not in the queue yet.
    std::optional<std::uint32_t> end(std::uint32_t link);
    /// The machine has the values of other hours. Returns the running links that leave earlier as a
    /// result.
    std::vector<std::uint32_t> change_hours(const Hours& hours);
    /// A node fails. Returns the links that it ends, now; call end() for each.
    std::vector<std::uint32_t> fail(int node);
    void restore(int node);

    bool may_start(const Entry& entry) const;
    /// The nodes of the shape that are not down, and that no reservation blocks for a job with this
    /// limit that starts at `start`.
    NodeSet open_nodes(const Shape& shape, Seconds start, Seconds limit) const;
    /// The next time after `start` at which a reservation ends, or the shape's own one starts.
    std::optional<Seconds> next_opening(const Shape& shape, Seconds start) const;
    /// The next time, at or after `moment`, at which time limits are checked.
    Seconds next_check(Seconds moment) const;

    /// Charges the use of running jobs, decays all use, and recomputes the priorities of all
    /// pending jobs. Returns whether that changed their order.
    bool recalculate();

private:
    /// Whether the scheduler has tried to place a job.
    enum class Considered { never, before };
    bool reprioritise();
    /// The priority of an entry that the scheduler has not tried to place.
    std::uint32_t first_priority(const Entry& entry);
    double age_term(Seconds submit) const;
    double partition_term(int partition) const;
    double qos_term(int index) const;
    double size_factor(const Shape& shape, Considered considered) const;
    void charge_running();
    std::uint32_t shape_for(const Shape& shape);
    std::optional<Shape> shape_in(int partition, const Link& link) const;
    bool may_use(int partition, const Link& link) const;
    bool is_open(const Entry& entry) const;
    bool is_requeued(const Link& link) const;
    bool shorten(std::uint32_t link, Seconds end);
    bool is_before_others(const std::vector<int>& partitions, std::size_t i) const;
    Link first_link(std::size_t job);
    std::vector<Running>::iterator place_of(const Departure& departure);
    double weight_on(const NodeSet& nodes) const;
    std::optional<std::uint32_t> next_after(const Link& last);
    void charge(Link& link);
    Seconds finish_of(Link& link) const;
    int per_gpu_on(const NodeSet& nodes) const;
    void record(const Link& link);

    std::vector<std::string> m_users;
    std::vector<std::string> m_accounts;
    std::vector<Entry> m_started;   ///< since drop_started()
    std::vector<Seconds> m_longest; ///< by partition: its time limit at any hours
    std::vector<int> m_outages;     ///< by node
    NodeSet m_up = NodeSet::all();
    /// The values behind the terms of priorities.
    struct Priorities {
        Seconds last_calculation{0};
        bool some_age = false;            ///< some entry of the queue is below the maximum age
        std::vector<double> size_factors; ///< by shape, once the scheduler has tried to place it
        int cluster_cpus = 0;
        int highest_factor = 0; ///< of a partition
        int highest_qos = 0;
    };
    Priorities m_priorities;
};

} // namespace gpuq::sim
