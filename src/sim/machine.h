// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::sim {

/// A duration, or a time: seconds since the trace's zero. Integers, so that every machine computes
/// the same.
using Seconds = std::chrono::seconds;

struct Node {
    std::string name;
    std::string model; ///< of its GPUs; empty: only for jobs that name none
    int gpus = 0;
    int cpus = 0;       ///< 0: not counted
    int memory_mib = 0; ///< 0: not counted
    int weight = 1;     ///< lowest first, within one partition
    std::vector<std::string> features = {};
    int leaf = 0;    ///< its leaf switch (topology/tree), counted from 1; 0: no topology
    int per_gpu = 0; ///< shares (gres/shard) of each GPU; 0: not shared
};

/// The effect on a partition's jobs if a partition of a higher tier needs their nodes.
enum class Preempt { off, cancel, requeue };

struct Partition {
    std::string name;
    std::vector<int> nodes; ///< indexes into Machine::nodes
    Seconds max_time = std::chrono::hours{24 * 365};
    Seconds default_time = std::chrono::hours{24 * 365}; ///< for a job without a limit
    int tier = 1;           ///< PriorityTier: highest first, regardless of priorities
    int job_factor = 0;     ///< PriorityJobFactor
    std::optional<int> qos; ///< index into Machine::qos
    Preempt preempt = Preempt::off;
    Seconds grace{0};
    std::vector<std::string> accounts; ///< AllowAccounts; empty: all
    bool closed = false;               ///< State=DOWN: jobs may be submitted, but none starts
    Seconds notice{0};                 ///< when it closes, its jobs may run for so long
};

/// Limits; unset: unlimited. A limit of the partition's QOS overrides the same limit of the job's.
struct Qos {
    std::string name;
    int priority = 0;
    std::optional<int> gpus_per_user;
    std::optional<int> gpus_per_account;
    std::optional<int> gpus_per_job;
    std::optional<int> jobs_per_user;
    std::optional<int> jobs_per_account;
    std::optional<int> submitted_per_user; ///< running and pending; more are refused
    std::optional<int> submitted_per_account;
    std::optional<int> group_gpus;
    std::optional<int> group_jobs;
    std::optional<int> group_submitted;
    std::optional<int> shares_per_user; ///< of GPUs (gres/shard), beside whole ones
    std::optional<int> shares_per_account;
    std::optional<int> shares_per_job;
    std::optional<int> group_shares;
    std::optional<std::int64_t> gpu_minutes_per_user; ///< remaining time of the running jobs
    std::optional<std::int64_t> gpu_minutes_per_account;
    std::optional<std::int64_t> group_gpu_minutes;
    std::optional<Seconds> max_time;
};

/// Nodes that are not available to jobs that would still run at `start`, except to those with
/// Job::reservation.
struct Reservation {
    std::string name;
    std::vector<int> nodes;
    Seconds start{0};
    Seconds end{0};
    /// TIME_FLOAT: `start` and `end` are relative to the current time, so that no job longer than
    /// `start` begins.
    bool floats = false;
};

/// The partitions and QOS of a machine at certain hours. In all hours there are the same ones, with
/// the same nodes and tiers; times, limits and `closed` may differ.
struct Hours {
    std::vector<Partition> partitions;
    std::vector<Qos> qos;
};

/// From a time on, these hours apply: an index into Machine::hours.
struct HoursFrom {
    Seconds time{0};
    std::size_t hours = 0;
};

/// A node that is down for a time. Jobs that run on it are lost: chains continue, and Slurm puts
/// other jobs back in the queue (JobRequeue=1).
struct Outage {
    int node = 0;
    Seconds start{0};
    Seconds end{0};
};

/// The share of an association in its parent. One that is not listed has one share.
struct Share {
    std::string account;
    std::string user;   ///< empty: the account itself
    std::string parent; ///< of an account; empty: the root
    int shares = 1;
};

struct GpuWeight {
    std::string model;
    double weight = 1; ///< of a GPU-second in fair share
};

/// The multifactor weights. All zero: first come, first served, as with priority/basic.
struct Weights {
    double age = 0;
    double fair_share = 0;
    double job_size = 0;
    double partition = 0;
    double qos = 0;
    Seconds max_age = std::chrono::hours{24 * 7};
    Seconds half_life = std::chrono::hours{24 * 7}; ///< 0: no decay
    Seconds calc_period{300};
    Seconds calc_phase{0}; ///< from time zero to the first calculation
    /// FairShareDampeningFactor of the algorithm before fair tree, which was Slurm's default until
    /// 19.05 (PriorityFlags=NO_FAIR_TREE since); 0: fair tree.
    int dampening = 0;
};

/// SchedulerParameters of sched/backfill with Slurm's defaults. `bf_continue` has no counterpart: a
/// simulated cycle takes no time and never yields.
struct Backfill {
    bool on = true;
    std::chrono::milliseconds interval = Seconds{30};
    std::chrono::milliseconds phase{0}; ///< of its cycles, from time zero
    Seconds window = std::chrono::hours{24};
    Seconds resolution{60};
    int max_jobs_tested = 500;
    int max_jobs_per_user = 0; ///< bf_max_job_user: the number tested; 0: all
    bool one_reservation_per_job = false;
};

/// Periods and delays of Slurm.
struct Timing {
    Seconds clock{0}; ///< Slurm's clock at time zero: backfill truncates times to multiples on it
    Seconds batch_sched_delay{3};
    Seconds sched_interval{60};    ///< period in which the main loop tests the whole queue
    int default_queue_depth = 100; ///< jobs that it tests otherwise
    /// The delay from a submission, and from a job's end, until the main loop can take it into
    /// account, which runs at each whole second; backfill takes it into account in the same second.
    /// Jobs without a known fraction of a second (Job::submit_part) are assigned one.
    std::chrono::milliseconds submission{700};
    std::chrono::milliseconds completion{300};
    /// The time backfill takes to test one job (sdiag: mean cycle over mean depth): its cycles are
    /// delayed by that, in addition to their interval.
    std::chrono::microseconds backfill_test{0};
    Seconds limit_check{30}; ///< time limits and grace times are checked at multiples of this
    Seconds kill_wait{30};
    Seconds requeue_delay{121}; ///< a requeued job is not eligible earlier
    Seconds preempt_exempt{0};  ///< PreemptExemptTime
};

/// The number of whole seconds by which `delay` shifts the record of an action that job or link
/// `number` took at its assigned fraction of a second.
inline Seconds whole_seconds(std::chrono::milliseconds delay, std::size_t number)
{
    const std::chrono::milliseconds part{static_cast<int>(number % 1000 * 618 % 1000)};
    return std::chrono::floor<Seconds>(part + delay);
}

struct Settings {
    /// Slurm's release, e.g. 2205 for 22.05. Before 20.11, select/cons_res combined the ends of
    /// running jobs in another way. 17.11 ran backfill at each interval, even if nothing had
    /// changed, according to sdiag data of a published run.
    int release = 2205;
    Weights weights;
    Backfill backfill;
    Timing timing;
    std::vector<GpuWeight> gpu_weights; ///< other models count 1
    double cpu_weight = 0;              ///< of a CPU-second in fair share
    bool preempts = false;              ///< PreemptType=preempt/partition_prio
};

/// The configuration of Slurm: nodes, partitions, QOS, reservations and settings; and its changes
/// over time.
struct Machine {
    std::vector<Node> nodes;
    std::vector<Partition> partitions; ///< at time zero
    std::vector<Qos> qos;              ///< likewise
    std::vector<Hours> hours;          ///< empty: the above, always
    std::vector<HoursFrom> changes;    ///< by time
    std::vector<Outage> outages;
    std::vector<Reservation> reservations;
    std::vector<Share> shares;
    Settings settings;
};

/// The maximum number of nodes of a machine.
inline constexpr std::size_t k_max_nodes = 512;

/// `usage` for the first invalid value: an index out of range, a negative size, a period of zero
/// length.
Result<void> check(const Machine& machine);

} // namespace gpuq::sim
