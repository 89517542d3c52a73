// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The rules of a short-GPU partition as its operators write them; man gpuq-policy(5) says the same
/// to them. Values only: policy/read.h reads them, policy/decide.h applies them to one job,
/// policy/objects.h says them in Slurm's words.
namespace gpuq::policy {

/// A value and where the file says it; line 0: nobody said it, it is the default.
template <typename T>
struct Rule {
    T value{};
    int line = 0;
    int column = 0;
    bool operator==(const Rule&) const = default;
};

/// A rule that need not be there.
template <typename T>
using Maybe = std::optional<Rule<T>>;

using std::chrono::minutes;
using std::chrono::seconds;

/// A model of GPU: Slurm's gres type.
struct GpuModel {
    std::string name;
    Maybe<std::uint64_t> memory_mib;
    Rule<double> weight{1.0}; ///< what an hour of it counts in fair share
    int line = 0;
    bool operator==(const GpuModel&) const = default;
};

/// GPUs of one model on a node.
struct GpuCount {
    std::string model; ///< empty: whatever the node has
    int count = 0;
    bool operator==(const GpuCount&) const = default;
};

/// How the owner of a pool gets it back from its guests.
struct Lend {
    Rule<seconds> grace{std::chrono::minutes{5}}; ///< between the notice and the end of a guest
    Rule<seconds> min_run{};                      ///< a guest is left alone so long
    Maybe<std::vector<std::string>> probe;        ///< exits 0 when the node is really idle
    int line = 0;
    bool operator==(const Lend&) const = default;
};

struct Course;

/// Threads per core where the policy states none: as most processors have them. A higher value
/// only refuses more.
constexpr int k_assumed_threads = 2;

/// Nodes with a name.
struct Pool {
    std::string name;
    Rule<std::vector<std::string>> nodes; ///< `ALL` alone: every node of the cluster
    std::string node_list;                ///< as written
    Rule<std::vector<GpuCount>> gpus;     ///< of each node; empty: not said
    /// Hardware threads, Slurm's CPUs, of each core; unset: not stated, and then assumed to be
    /// k_assumed_threads where a job restricts the threads it uses.
    Maybe<int> threads_per_core;
    Maybe<std::string> owner; ///< a queue: all others are guests
    std::optional<Lend> lend; ///< without: guests are never sent away
    int line = 0;
    bool operator==(const Pool&) const = default;

    int gpus_per_node() const;
    /// As stated, else k_assumed_threads.
    int threads() const { return threads_per_core ? threads_per_core->value : k_assumed_threads; }
    /// Perhaps, when the file does not say which models it has.
    bool has_model(const std::string& model) const;
    bool has_models() const; ///< it is said which
    bool has_node(const std::string& node) const;
    bool has_some_of(const Course& course) const;
};

/// What one user, one account or all together may have in a queue.
struct Share {
    Maybe<int> gpus;            ///< never more at a time
    Maybe<int> soft_gpus;       ///< more only while nobody else waits for them
    Maybe<int> jobs;            ///< running
    Maybe<int> queued;          ///< running and waiting
    Maybe<int> gpu_hours_ahead; ///< GPUs x what is left of the time limits, running jobs
    bool operator==(const Share&) const = default;
};

struct JobLimits {
    Maybe<int> gpus;
    Maybe<int> nodes;
    bool operator==(const JobLimits&) const = default;
};

struct Limits {
    Share user;
    Share account;
    Share all; ///< everybody together
    JobLimits job;
    bool operator==(const Limits&) const = default;

    /// The tightest limit on the GPUs that one job can ever have; none: all there are.
    Maybe<int> most_gpus_of_a_job() const;
    bool has_soft() const;
};

/// Who may use a queue; both empty: everybody.
struct Access {
    std::vector<std::string> users;
    std::vector<std::string> accounts;
    Maybe<std::string> ask; ///< whom to ask for it
    int line = 0;
    bool operator==(const Access&) const = default;
    bool is_open() const { return users.empty() && accounts.empty(); }
};

/// How long people are to wait at most, by parts of the jobs.
struct WaitTarget {
    Maybe<minutes> p50;
    Maybe<minutes> p95;
    Maybe<minutes> max;
    bool operator==(const WaitTarget&) const = default;
};

/// That runs longer than the queue's limit go on as chains, and how far.
struct ChainRule {
    Maybe<minutes> link;
    Maybe<int> links;
    Maybe<int> gpu_hours;
    Maybe<std::string> credentials; ///< of a link without its ticket: `hold`, `run` or `fail`
    int line = 0;
    bool operator==(const ChainRule&) const = default;
};

/// GPUs that a run of gpuq holds and does not use are taken back. Slurm knows nothing of it.
struct IdleRule {
    Rule<seconds> after;                           ///< all of them unused for so long
    Rule<seconds> warn{};                          ///< so long before that the run is warned
    Rule<seconds> start{std::chrono::minutes{10}}; ///< after the start of the program; is left out
    Rule<int> max_per_hour{4};                     ///< of one user
    int line = 0;
    bool operator==(const IdleRule&) const = default;
};

/// A door to pools, with rules.
struct Queue {
    std::string name;
    Rule<minutes> max_time;
    Rule<minutes> default_time;              ///< of a job that states none
    Rule<std::vector<std::string>> pools;    ///< the first is preferred
    Rule<std::vector<std::string>> overflow; ///< used when idle, behind everybody there
    Maybe<std::vector<std::string>> models;  ///< without: all
    Maybe<int> cpus_per_gpu; ///< comes with each GPU, and is all that a job gets with it
    Maybe<std::uint64_t> memory_per_gpu_mib;
    Limits limits;
    Access access;
    WaitTarget wait;
    std::optional<ChainRule> chain;
    std::optional<IdleRule> idle; ///< without: nobody's GPUs are taken back
    Maybe<std::string> through;   ///< `gpuq`: only runs of gpuq
    int line = 0;
    bool operator==(const Queue&) const = default;
};

/// Who uses how much, by GPU-hours of the past (Slurm's fair tree).
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

/// Nodes kept for named people at named times; their jobs go there by themselves.
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

/// One of the file's own tests: what happens to a job.
struct Case {
    std::string name;
    // The job:
    std::string user;
    std::string account;
    std::optional<minutes> time;
    std::optional<std::string> queue;  ///< asked for
    std::optional<std::string> course; ///< one that is on
    bool plain = false;                ///< sent by sbatch itself, not through gpuq
    std::string gpus;                  ///< as for sbatch --gpus: `2`, `k80:2`; empty: none
    int nodes = 1;
    std::optional<int> cpus;                 ///< per node
    std::optional<std::uint64_t> memory_mib; ///< per node
    // What is expected of it:
    std::optional<std::string> in; ///< a queue's name; none: the job is refused
    std::string because;           ///< part of the refusal
    int line = 0;
    bool operator==(const Case&) const = default;
};

struct Policy {
    std::string file; ///< as messages name it
    std::vector<GpuModel> gpus;
    std::vector<Pool> pools;
    std::vector<Queue> queues;        ///< a job without a queue goes to the first that takes it
    Maybe<std::string> default_queue; ///< of jobs that ask for no GPU and no queue
    FairShare fair_share;
    std::vector<Course> courses;
    std::vector<Case> tests;
    bool operator==(const Policy&) const = default;

    const Pool* pool(const std::string& name) const;
    const Queue* queue(const std::string& name) const;
    const GpuModel* model(const std::string& name) const;
};

} // namespace gpuq::policy
