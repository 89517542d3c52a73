// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/comment.h"
#include "core/slurm_object.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// The rules of a site's GPU queues, as written by its administrators and documented in man
/// gpuq-policy(5). Values only: policy/read.h parses them, policy/decide.h applies them to one job,
/// policy/objects.h converts them to Slurm's objects.
namespace gpuq::policy {

/// A value and its position in the file; line 0: a default, not in the file.
template <typename T>
struct Rule {
    T value{};
    int line = 0;
    int column = 0;
    bool operator==(const Rule&) const = default;
};

/// An optional rule.
template <typename T>
using Maybe = std::optional<Rule<T>>;

using std::chrono::minutes;
using std::chrono::seconds;

/// A GPU model: Slurm's gres type.
struct GpuModel {
    std::string name;
    Maybe<std::uint64_t> memory_mib;
    Rule<double> weight{1.0}; ///< of one hour in fair share
    int line = 0;
    bool operator==(const GpuModel&) const = default;
};

/// GPUs of one model on a node.
struct GpuCount {
    std::string model; ///< empty: any model that the node has
    int count = 0;
    bool operator==(const GpuCount&) const = default;
};

/// Hours of some days of the week, on the clock of the controller's host.
struct Window {
    std::array<bool, 7> days{true, true, true, true, true, true, true}; ///< Monday first
    minutes from{0};                                                    ///< after midnight
    minutes to{24 * 60}; ///< on the same day or, unless it is after `from`, on the next one
    bool operator==(const Window&) const = default;
};

using Hours = std::vector<Window>; ///< open while any of them is

/// How guests of a pool are preempted for its owner.
struct Lend {
    Rule<seconds> grace{std::chrono::minutes{5}}; ///< between the notice and the end of a guest
    Rule<seconds> min_run{};                      ///< of a guest, before it may be preempted
    Maybe<std::vector<std::string>> probe;        ///< exits with 0 if the node is really idle
    Hours when;                                   ///< empty: always
    bool closed = false;      ///< to guests, at the moment of policy_at() (policy/calendar.h)
    bool only_sweeps = false; ///< all queues but that for sweeps are owners (section `sweeps`)
    int line = 0;
    bool operator==(const Lend&) const = default;
};

struct Course;

/// Threads per core if the policy specifies none, as on most processors. A value that is too high
/// only refuses more jobs.
constexpr int k_assumed_threads = 2;

/// How the GPUs of a pool are shared: as Slurm's gres/shard.
struct Shares {
    Rule<int> per_gpu{};
    int line = 0;
    bool operator==(const Shares&) const = default;
};

/// A named set of nodes.
struct Pool {
    std::string name;
    Rule<std::vector<std::string>> nodes; ///< `ALL` alone: all nodes of the cluster
    std::string node_list;                ///< as written
    Rule<std::vector<GpuCount>> gpus;     ///< of each node; empty: not specified
    /// Hardware threads (Slurm's CPUs) of each core; unset: not specified, and assumed to be
    /// k_assumed_threads for a job that restricts its threads.
    Maybe<int> threads_per_core;
    Maybe<std::string> owner;     ///< a queue; all others are guests
    std::optional<Lend> lend;     ///< unset: guests are never preempted
    std::optional<Shares> shares; ///< unset: only whole GPUs
    Hours when;                   ///< in which jobs may run; empty: always
    bool closed = false;          ///< to all jobs, at the moment of policy_at()
    int line = 0;
    bool operator==(const Pool&) const = default;

    int gpus_per_node() const;
    /// As specified, else k_assumed_threads.
    int threads() const { return threads_per_core ? threads_per_core->value : k_assumed_threads; }
    /// Also true if the file does not specify the pool's models.
    bool has_model(const std::string& model) const;
    bool has_models() const; ///< whether all its models are specified
    bool has_node(const std::string& node) const;
    bool has_some_of(const Course& course) const;
    /// How long before the pool, or its lending, closes no job starts in it any more, and those
    /// that run have notice.
    seconds notice() const { return lend ? lend->grace.value : Lend{}.grace.value; }
};

/// Limits of one user, one account or all together in a queue.
struct Share {
    Maybe<int> gpus;            ///< never more at a time
    Maybe<int> soft_gpus;       ///< more only while no other job waits for them
    Maybe<int> jobs;            ///< running
    Maybe<int> queued;          ///< running and pending
    Maybe<int> gpu_hours_ahead; ///< GPUs times remaining time limits of the running jobs
    Maybe<int> shares;          ///< of GPUs; never more at a time
    bool operator==(const Share&) const = default;
};

struct JobLimits {
    Maybe<int> gpus;
    Maybe<int> nodes;
    Maybe<int> shares;
    bool operator==(const JobLimits&) const = default;
};

struct Limits {
    Share user;
    Share account;
    Share all; ///< all users together
    JobLimits job;
    bool operator==(const Limits&) const = default;

    /// The tightest limit on the GPUs that one job can ever have; nullopt: no limit.
    Maybe<int> most_gpus_of_a_job() const;
    /// The tightest limit on the shares of a job; nullopt: jobs with shares are not accepted.
    Maybe<int> most_shares_of_a_job() const;
    bool has_soft() const;
};

/// An account's name as Slurm stores it, and a policy has it: in lower case. Slurm accepts any
/// case.
std::string stored_account(std::string name);

/// The users and accounts that may use a queue; both empty: all.
struct Access {
    std::vector<std::string> users;
    std::vector<std::string> accounts;
    Maybe<std::string> ask; ///< contact for requesting access
    int line = 0;
    bool operator==(const Access&) const = default;
    bool is_open() const { return users.empty() && accounts.empty(); }
};

/// Wait targets, by percentile of the jobs.
struct WaitTarget {
    Maybe<minutes> p50;
    Maybe<minutes> p95;
    Maybe<minutes> max;
    bool operator==(const WaitTarget&) const = default;
};

/// Allows runs longer than the queue's time limit, as chains, up to these limits.
struct ChainRule {
    Maybe<minutes> link;
    Maybe<int> links;
    Maybe<int> gpu_hours;
    Maybe<std::string> credentials; ///< for a link without its ticket: `hold`, `run` or `fail`
    int line = 0;
    bool operator==(const ChainRule&) const = default;
};

/// GPUs that a run of gpuq holds but does not use are taken back. Slurm is not involved.
struct IdleRule {
    Rule<seconds> after;                           ///< time for which all of them are unused
    Rule<seconds> warn{};                          ///< warning time before that
    Rule<seconds> start{std::chrono::minutes{10}}; ///< after the program's start; not counted
    Rule<int> max_per_hour{4};                     ///< per user
    int line = 0;
    bool operator==(const IdleRule&) const = default;
};

/// Values that replace those of a queue at certain hours (policy/calendar.h).
struct CalendarEntry {
    Hours when;
    Maybe<minutes> max_time;
    Maybe<minutes> default_time;
    Limits limits; ///< those that are unset keep the value of the queue
    int line = 0;
    bool operator==(const CalendarEntry&) const = default;
};

/// When running jobs get more time: any of these is enough.
struct ExtendConditions {
    bool unless_others_wait = false; ///< no job of another user waits for the nodes
    bool save_known = false;         ///< the owner's gpuq has seen a checkpoint of the run
    bool operator==(const ExtendConditions&) const = default;
};

/// More time for running jobs with `gpuq extend` (policy/extend.h).
struct ExtendRule {
    Rule<minutes> by;                ///< the most at a time
    Rule<int> times{1};              ///< a job gets so many beyond the queue's time
    Maybe<ExtendConditions> only_if; ///< unset: always
    int line = 0;
    bool operator==(const ExtendRule&) const = default;
};

/// Access to pools, with rules.
struct Queue {
    std::string name;
    Rule<minutes> max_time;
    Rule<minutes> default_time;              ///< of a job that specifies none
    Rule<std::vector<std::string>> pools;    ///< the first is preferred
    Rule<std::vector<std::string>> overflow; ///< used when idle, after all other queues
    Maybe<std::vector<std::string>> models;  ///< unset: all
    Maybe<int> cpus_per_gpu; ///< comes with each GPU, and is the maximum that a job gets with it
    Maybe<std::uint64_t> memory_per_gpu_mib;
    Limits limits;
    Access access;
    WaitTarget wait;
    std::optional<ChainRule> chain;
    std::optional<IdleRule> idle;     ///< unset: idle GPUs are not taken back
    Maybe<seconds> notebook_idle;     ///< default and maximum of `gpuq notebook --idle`
    std::optional<ExtendRule> extend; ///< unset: only operators extend running jobs
    Maybe<std::string> through; ///< `gpuq`: only runs of gpuq; `sweep`: only workers of its sweeps
    std::vector<CalendarEntry> calendar; ///< of overlapping entries, the last one holds
    bool is_implied = false;             ///< not in the file as a queue: by section `sweeps`
    int line = 0;
    bool operator==(const Queue&) const = default;
};

/// Fair share by GPU-hours of the past (Slurm's fair tree).
struct FairShare {
    struct Part {
        std::string account;
        Rule<int> shares;
        bool operator==(const Part&) const = default;
    };
    Rule<seconds> half_life{std::chrono::hours{24 * 7}};
    std::vector<Part> shares;
    bool operator==(const FairShare&) const = default;
};

/// Nodes reserved for certain users at certain times; their jobs go to these nodes automatically.
struct Course {
    enum class Repeat { once, daily, weekdays, weekly };
    std::string name;
    Rule<std::vector<std::string>> nodes;
    std::string node_list;   ///< as written
    Rule<std::string> start; ///< local time of the controller, as in `2026-11-03T13:00`
    Rule<minutes> duration;
    Rule<Repeat> repeat{Repeat::once};
    std::vector<std::string> users;
    std::vector<std::string> accounts;
    int line = 0;
    bool operator==(const Course&) const = default;
};

/// Who may reserve GPUs with `gpuq reserve`, and how many (policy/reserve.h).
struct ReserveRule {
    std::vector<std::string> users;
    std::vector<std::string> accounts;
    Maybe<std::vector<std::string>> pools; ///< the first is preferred; unset: all
    Rule<minutes> ahead{std::chrono::hours{24 * 14}};
    Rule<minutes> longest{std::chrono::hours{4}};
    Maybe<int> most; ///< GPUs that such reservations hold at the same time; unset: no limit
    int line = 0;
    bool operator==(const ReserveRule&) const = default;
};

/// Names that `gpuq site` may publish besides the names of queues and GPU models.
struct Publish {
    enum class Use { by_model, by_lab, by_account };
    Use use = Use::by_model;  ///< by_lab: by model and lab, as in JobUse::lab
    bool courses = false;     ///< their names
    Rule<int> least_users{5}; ///< of a row, so that it does not show the activity of one user
    int line = 0;
    bool operator==(const Publish&) const = default;
};

/// Objects in Slurm that the site manages itself: they are compared, and never changed. Names and
/// values are Slurm's, as described in core/slurm_object.h.
struct Site {
    /// Settings, partitions, QOS, access, shares, limits, reservations, and the site's own script
    /// with the version that script_version() (lua.h) has for its text.
    std::vector<SlurmObject> objects;
    std::set<SlurmObject::Kind> kinds; ///< listed completely: any other object is a difference
    int line = 0;
    bool operator==(const Site&) const = default;
};

/// One of the file's own tests: the expected result for a job.
struct Case {
    std::string name;
    std::optional<std::string> at; ///< local time, as of a course; unset: outside the calendar
    // The job:
    std::string user;
    std::string account;
    std::optional<minutes> time;
    std::optional<std::string> queue;  ///< requested
    std::optional<std::string> course; ///< one in progress
    Submitter through = Submitter::run;
    std::string gpus;          ///< as for sbatch --gpus: `2`, `k80:2`; empty: none
    std::optional<int> shares; ///< as for sbatch --gres=shard:N
    int nodes = 1;
    std::optional<int> cpus;                 ///< per node
    std::optional<std::uint64_t> memory_mib; ///< per node
    // The expected result:
    std::optional<std::string> in; ///< name of a queue; nullopt: the job is refused
    std::string because;           ///< part of the refusal
    int line = 0;
    bool operator==(const Case&) const = default;
};

/// Users who may see and act on the jobs of others, by the helper.
struct HelpDesk {
    std::vector<std::string> users;
    bool stop = false;
    bool extend = false; ///< within the rule of the job's queue
    bool see = false;
    int line = 0;
    bool operator==(const HelpDesk&) const = default;
};

struct Policy {
    std::string file; ///< as named in messages
    std::vector<GpuModel> gpus;
    std::vector<Pool> pools;
    std::vector<Queue> queues;        ///< a job without a queue goes to the first that accepts it
    Maybe<std::string> default_queue; ///< for jobs that request neither GPUs nor a queue
    FairShare fair_share;
    std::vector<Course> courses;
    std::optional<ReserveRule> reserve; ///< unset: `gpuq reserve` reserves nothing
    Publish publish;
    /// An account that is an operator of Slurm, as which sudo lets users run `gpuq extend`.
    Maybe<std::string> helper;
    std::optional<HelpDesk> help_desk;
    std::optional<Site> site; ///< a policy that has it may have no queues
    std::vector<Case> tests;
    bool operator==(const Policy&) const = default;

    const Pool* pool(const std::string& name) const;
    const Queue* queue(const std::string& name) const;
    const GpuModel* model(const std::string& name) const;
    /// The first queue for workers of sweeps, which no other queue accepts then; null: all do.
    const Queue* sweep_queue() const;
};

/// Whether its jobs must be workers of sweeps.
bool is_for_sweeps(const Queue& queue);

} // namespace gpuq::policy
