// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/queues/node_resources.h"
#include "runs/queues/run_times.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// The course of a cluster's queues from a given moment, for given run times. Made for repetition
/// with other run times: 10,000 pending jobs take 0.01 s. Pure.
namespace gpuq {

/// Schedules like Slurm: in the order of priorities, with backfill by the time limits. A blocked
/// job books the nodes on which it could start by the time limits of the others; jobs behind it
/// start there only if they reach their own limits before that.
class QueueCourse {
public:
    static constexpr double k_never = std::numeric_limits<double>::infinity();

    struct Running {
        const Job* job = nullptr;
        double elapsed = 0;     ///< seconds
        double limit = k_never; ///< seconds, from its start
        RunTimes::Kind kind = 0;
    };
    struct Pending {
        const Job* job = nullptr;
        double limit = k_never; ///< seconds, of each task
        RunTimes::Kind kind = 0;
        int tasks = 1; ///< of an array that limits how many run at once: one by one
        /// False: the nodes that are up in its queue lack its resources, or its queue is closed. It
        /// is left out.
        bool can_start = true;
        bool is_wanted = false; ///< set by the caller
    };

    /// The arguments must outlive the object.
    QueueCourse(const AllJobs& all, const Inventory& inventory, Time now);

    /// The jobs that hold nodes, and those in line, in Slurm's order. A pending array has several
    /// entries, the first of which is its first task.
    const std::vector<Running>& running() const { return m_running; }
    std::vector<Pending>& pending() { return m_pending; }

    /// The first array with more tasks than Slurm shows, or than can be simulated, by the index of
    /// its first entry: nothing is known about jobs behind that.
    const std::optional<std::size_t>& incomplete() const { return m_incomplete; }

    /// The starts of the pending jobs in seconds from now, until all wanted ones have started; for
    /// the others, k_never if they have not started by then. `remaining`: seconds until each
    /// running job ends; `durations`: seconds of each pending one,
    /// of all its tasks together.
    std::vector<double> run(const std::vector<double>& remaining,
                            const std::vector<double>& durations) const;

private:
    using Node = NodeResources::Node;
    using NodeSet = NodeResources::NodeSet;
    /// A request of pending jobs, whatever their time limits.
    struct Request {
        const NodeSet* nodes = nullptr;         ///< that they may use
        std::vector<NodeResources::Need> needs; ///< for `least` nodes, then for more
        std::size_t least = 1;
        bool can_start = true; ///< on nodes that are up, if no job held anything
    };
    /// Pending jobs with the same request and time limit.
    struct Shape {
        std::size_t request = 0; ///< index
        double limit = k_never;
        std::vector<std::uint32_t> jobs; ///< indexes into pending(), in order
    };
    class Run;

    void seat(const Job& job, Time now);
    void line_up(const Job& job, const Inventory& inventory);
    Shape* find_shape(const Job& job, const Inventory& inventory, double limit);
    void add_tasks(const Job& job, double limit, Shape* shape);
    const NodeSet& nodes_for(const Job& job, const Inventory& inventory);
    Request request_of(const Job& job, const NodeSet& nodes);
    bool could_ever(const Request& request) const;

    NodeResources m_nodes;
    std::vector<Running> m_running;
    std::vector<std::vector<NodeResources::Part>> m_held; ///< by the running jobs
    std::vector<Pending> m_pending;
    std::map<std::tuple<std::string, std::string, std::string>, NodeSet> m_node_sets;
    std::map<std::string, std::size_t> m_request_index; ///< by a text that identifies it
    std::vector<Request> m_requests;
    std::map<std::pair<std::size_t, double>, std::size_t> m_shape_index; ///< by request and limit
    std::vector<Shape> m_shapes;
    bool m_all_need_gpus = true;
    std::optional<std::size_t> m_incomplete;
};

} // namespace gpuq
