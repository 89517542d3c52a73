// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::sim {

/// A length of time, and a moment: seconds since the trace's own zero. Whole, so that every machine
/// computes the same.
using Seconds = std::chrono::seconds;

struct Node {
    std::string name;
    std::string model; ///< of its GPUs; empty: only for jobs that name none
    int gpus = 0;
    int cpus = 0;       ///< 0: not counted
    int memory_mib = 0; ///< 0: not counted
    int weight = 1;     ///< lower is taken first, within one partition
    std::vector<std::string> features = {};
    int leaf = 0; ///< its switch, of those that carry nodes (topology/tree); 0: no topology
};

/// What happens to a partition's jobs when a partition of a higher tier wants their nodes.
enum class Preempt { off, cancel, requeue };

struct Partition {
    std::string name;
    std::vector<int> nodes; ///< indexes into Machine::nodes
    Seconds max_time = std::chrono::hours{24 * 365};
    Seconds default_time = std::chrono::hours{24 * 365}; ///< for a job without a limit
    int tier = 1;           ///< PriorityTier: higher goes first, whatever the priorities
    int job_factor = 0;     ///< PriorityJobFactor
    std::optional<int> qos; ///< index into Machine::qos
    Preempt preempt = Preempt::off;
    Seconds grace{0};
    std::vector<std::string> accounts; ///< AllowAccounts; empty: everybody
};

/// Limits; none: unlimited. A limit of the partition's QOS hides the same limit of the job's.
struct Qos {
    std::string name;
    int priority = 0;
    std::optional<int> gpus_per_user;
    std::optional<int> gpus_per_account;
    std::optional<int> gpus_per_job;
    std::optional<int> jobs_per_user;
    std::optional<int> submitted_per_user; ///< running and waiting; more are refused
    std::optional<int> group_gpus;
    std::optional<int> group_jobs;
    std::optional<std::int64_t> group_gpu_minutes; ///< still to be run by the running jobs
    std::optional<Seconds> max_time;
};

/// Nodes kept from every job that would still run at `start`, but for those with Job::reservation.
struct Reservation {
    std::string name;
    std::vector<int> nodes;
    Seconds start{0};
    Seconds end{0};
    /// TIME_FLOAT: `start` and `end` count from every moment anew: no job longer than `start`
    /// begins.
    bool floats = false;
};

/// An association's part of its parent's share. What is not listed has one share.
struct Share {
    std::string account;
    std::string user;   ///< empty: the account itself
    std::string parent; ///< of an account; empty: the root
    int shares = 1;
};

struct GpuWeight {
    std::string model;
    double weight = 1; ///< what a GPU-second counts in fair share
};

/// The multifactor weights. All zero: first come, first served, as priority/basic.
struct Weights {
    double age = 0;
    double fair_share = 0;
    double job_size = 0;
    double partition = 0;
    double qos = 0;
    Seconds max_age = std::chrono::hours{24 * 7};
    Seconds half_life = std::chrono::hours{24 * 7}; ///< 0: nothing is forgotten
    Seconds calc_period{300};
    Seconds calc_phase{0}; ///< from the zero of time to the first calculation
    /// FairShareDampeningFactor of the algorithm before the fair tree, which was Slurm's default
    /// until 19.05 (PriorityFlags=NO_FAIR_TREE since); 0: the fair tree.
    int dampening = 0;
};

/// SchedulerParameters of sched/backfill with Slurm's defaults. `bf_continue` has no counterpart: a
/// cycle takes no time here and never yields.
struct Backfill {
    bool on = true;
    std::chrono::milliseconds interval = Seconds{30};
    std::chrono::milliseconds phase{0}; ///< of its cycles, from the zero of time
    Seconds window = std::chrono::hours{24};
    Seconds resolution{60};
    int max_jobs_tested = 500;
    int max_jobs_per_user = 0; ///< bf_max_job_user: so many tested; 0: all
    bool one_reservation_per_job = false;
};

/// How long Slurm takes for things.
struct Timing {
    Seconds clock{0}; ///< what Slurm's clock shows at the zero of time: backfill cuts to multiples
    Seconds batch_sched_delay{3};
    Seconds sched_interval{60};    ///< the main loop looks at the whole queue this often
    int default_queue_depth = 100; ///< else at so many
    /// From a submission, and from a job's end, to what the main loop knows on its turn, which is
    /// at each whole second; backfill knows in the second itself. A job of whose parts of seconds
    /// nothing is known (Job::submit_part) is given some.
    std::chrono::milliseconds submission{700};
    std::chrono::milliseconds completion{300};
    /// What backfill takes to look at one job (sdiag: mean cycle over mean depth): its cycles come
    /// so much later than its interval says.
    std::chrono::microseconds backfill_test{0};
    Seconds limit_check{30}; ///< time limits and ends of grace are found at multiples of this
    Seconds kill_wait{30};
    Seconds requeue_delay{121}; ///< a requeued job is not eligible before
    Seconds preempt_exempt{0};  ///< PreemptExemptTime
};

/// The whole seconds by which `delay` moves the record of something that job or link `number` did
/// at a part of a second of its own.
inline Seconds whole_seconds(std::chrono::milliseconds delay, std::size_t number)
{
    const std::chrono::milliseconds part{static_cast<int>(number % 1000 * 618 % 1000)};
    return std::chrono::floor<Seconds>(part + delay);
}

struct Settings {
    /// Of Slurm, as 2205 for 22.05. Before 20.11 select/cons_res took the ends of running jobs
    /// together otherwise. 17.11 ran its backfill at each interval, whether anything had changed or
    /// not, as sdiag tells of a published run.
    int release = 2205;
    Weights weights;
    Backfill backfill;
    Timing timing;
    std::vector<GpuWeight> gpu_weights; ///< a model without one counts 1
    double cpu_weight = 0;              ///< what a CPU-second counts in fair share
    bool preempts = false;              ///< PreemptType=preempt/partition_prio
};

/// What Slurm is told: nodes, partitions, QOS, reservations and settings.
struct Machine {
    std::vector<Node> nodes;
    std::vector<Partition> partitions;
    std::vector<Qos> qos;
    std::vector<Reservation> reservations;
    std::vector<Share> shares;
    Settings settings;
};

/// The most nodes a machine may have.
inline constexpr std::size_t k_max_nodes = 512;

/// `usage` with the first thing that makes no sense: an index out of range, a negative size, a
/// period of no length.
Result<void> check(const Machine& machine);

} // namespace gpuq::sim
