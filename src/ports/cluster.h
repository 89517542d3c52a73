// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuq {

/// A Slurm partition. The additional partitions that a queue of a gpuq policy has for its other
/// pools are not listed; they are merged into the queue: its nodes include theirs, and `most_nodes`
/// and `grace` are the largest values.
struct Partition {
    std::string name;
    std::optional<std::chrono::minutes> max_time; ///< nullopt: no limit
    std::optional<std::chrono::minutes> default_time;
    bool is_default = false;
    bool up = true;
    bool ruled = false; ///< a queue of a gpuq policy: several may be requested, and the first one
                        ///< that accepts a job gets it (man gpuq-policy(5))
    std::string nodes;  ///< Slurm's host list expression
    std::optional<int> most_nodes; ///< limit per job; nullopt: unknown
    std::string submit_hosts;      ///< AllocNodes, as written: hosts from which jobs may be
                                   ///< submitted; empty: any
    /// Time that a preempted job has left to save its state; 0 if none, or if jobs are not
    /// preempted.
    std::chrono::seconds grace{0};
};

/// GPUs of one model on one node.
struct NodeGpus {
    std::string model; ///< empty when Slurm has no type
    int total = 0;
    std::optional<int> in_use; ///< nullopt when not reported
    bool operator==(const NodeGpus&) const = default;
};

struct Node {
    std::string name;
    std::vector<NodeGpus> gpus;
    std::vector<std::string> partitions;
    bool up = true; ///< accepts new jobs
    int cpus = 0;
    std::uint64_t memory_mib = 0;
    bool reserved = false;          ///< in an active reservation: not available to all users
    std::optional<int> cpus_in_use; ///< nullopt when not reported
};

enum class JobState {
    pending,
    running,
    suspended,
    completing,
    completed,
    failed,
    cancelled,
    timeout,
    node_fail,
    preempted,
    out_of_memory,
    boot_fail,
    deadline,
    unknown
};

/// True when no process of the job can still be running.
bool is_over(JobState state);

/// GPUs of one model that a job holds on one node.
struct HeldGpus {
    std::string node;
    std::string model; ///< empty when Slurm has no type
    int count = 0;
    bool operator==(const HeldGpus&) const = default;
};

/// GPUs of one model that a job requests on all its nodes together.
struct RequestedGpus {
    std::string model; ///< empty: any
    int count = 0;
    bool operator==(const RequestedGpus&) const = default;
};

/// Resources that a pending job requests or a running job has.
struct JobSize {
    int nodes = 1;                ///< minimum
    int cpus = 0;                 ///< on all nodes together; 0: unknown
    std::uint64_t memory_mib = 0; ///< on all nodes together; 0: unknown
    std::vector<RequestedGpus> gpus;
    bool whole_nodes = false;   ///< exclusive use of its nodes
    std::string only_nodes;     ///< host list; empty: any
    std::string excluded_nodes; ///< host list
    /// Other requests that gpuq does not match against nodes: `features`, ...
    std::string other;
    bool spreads = false; ///< its GPUs may span more nodes than `nodes` (`--gpus`)
    bool operator==(const JobSize&) const = default;
};

/// Files of a job with patterns such as `%j` resolved by slurmctld; empty if the job has none.
struct JobFiles {
    std::string script; ///< of a batch job, as given
    std::string work_dir;
    std::string output; ///< absolute; `error` is the same file unless the job names another
    std::string error;
    bool operator==(const JobFiles&) const = default;
};

/// A job as reported by slurmctld.
struct Job {
    JobId id;
    std::string name;
    std::string partition;
    std::string comment;
    JobState state = JobState::unknown;
    std::optional<JobState> outcome; ///< completing job: its final state
    std::string reason;              ///< Slurm's reason: Priority, Resources, ...; or empty
    std::optional<int> exit_status;  ///< ended job; 128+N for signal N
    std::optional<Time> submitted_at;
    std::optional<Time> started_at; ///< pending job: expected start, if Slurm has one
    std::optional<Time> ends_at;    ///< running job: its time limit, if any; ended job: when it
                                    ///< ended
    std::optional<std::chrono::minutes> walltime; ///< time limit; nullopt: none, or not reported
    std::string nodes;                            ///< host list, empty while pending
    std::string batch_host;                       ///< node of step 0 or of the batch script
    int gpus = 0;
    bool batch = false; ///< has a batch script; otherwise an allocation that must be released
    std::uint32_t uid = 0;
    std::optional<std::uint32_t> priority; ///< pending job: highest starts first; 0: held
    std::vector<HeldGpus> held;            ///< running job
    /// The name used by Slurm's commands where it is not the id: a task of an array (`20_3`), the
    /// pending tasks of one (`20_[4-9%2]`), a component of a heterogeneous job (`20+1`).
    std::string called;
    JobSize size;
    JobFiles files;
    std::string account;
    std::string qos;
    bool operator==(const Job&) const = default;
};

/// Partitions and nodes at one point in time.
struct Inventory {
    std::vector<Partition> partitions;
    std::vector<Node> nodes;
};

/// The jobs of all users.
struct AllJobs {
    std::vector<Job> jobs;
    bool complete = true; ///< false: the site hides other users' jobs from the caller
};

/// A job request. Every job also gets gpuq's comment and `--no-requeue`.
struct JobSpec {
    std::string name;
    std::string partition;
    std::string comment; ///< job_comment(key)
    std::string work_dir;
    std::string output;               ///< batch: absolute path to which the script's own output is
                                      ///< appended; empty: /dev/null
    std::chrono::minutes walltime{0}; ///< 0: the partition's default
    int nodes = 1;
    int tasks_per_node = 1;
    int gpus_per_node = 0;
    std::optional<std::string> gpu_model;
    std::optional<int> cpus_per_node;
    std::optional<std::uint64_t> memory_mib_per_node;
    std::optional<std::string> account;
    std::optional<std::string> qos;
    std::optional<JobId> after_ok;    ///< start only if that job succeeds
    std::optional<JobId> after_any;   ///< start when that job has ended, with any result
    std::chrono::seconds pause{0};    ///< start no earlier than this long from now
    std::vector<std::string> exclude; ///< nodes not to use
    bool by_sbatch = false; ///< batch: the script has #SBATCH lines, which only sbatch can parse
};

/// The client process (srun) of a step, which carries its standard streams. `input` may be -1 (the
/// step reads /dev/null). The owner must close the descriptors.
struct StepProcess {
    int pid = -1;
    std::uint64_t born = 0; ///< start time in kernel clock ticks: detects a reused pid
    int input = -1;
    int output = -1;
    int error = -1; ///< srun's own messages and the task's stderr
};

/// State and configuration of the controller.
struct Controller {
    std::string version;              ///< release of slurmctld: 22.05.8
    std::string library;              ///< release of libslurm that gpuq was built with
    std::optional<Time> now;          ///< its clock when it responded, to the second
    std::string scheduler_parameters; ///< SchedulerParameters, as written
    std::chrono::seconds kill_wait{0};
    std::chrono::seconds inactive_limit{0}; ///< 0: none
    bool keeps_accounting = false;
    bool counts_memory = true; ///< nodes' memory is allocated to jobs (CR_*_Memory)
    /// A job is confined to its memory: ConstrainRAMSpace with task/cgroup, or OverMemoryKill.
    bool limits_memory = true;
    /// PrivateData, as in slurm.conf: what users without privileges do not see of others.
    std::vector<std::string> private_data = {};
};

/// Jobs, partitions, nodes and steps of one cluster. Calls block for up to Slurm's MessageTimeout
/// (10 s by default). Use from one thread at a time.
///
/// `unreachable` always means that the outcome is unknown: the request may have been carried out.
class Cluster {
public:
    virtual ~Cluster() = default;

    /// ClusterName. No RPC.
    virtual Result<std::string> name() = 0;

    virtual Result<Controller> controller() = 0;
    virtual Result<std::vector<Partition>> partitions() = 0;
    virtual Result<std::vector<Node>> nodes() = 0;
    /// Partitions and nodes, in two RPCs.
    virtual Result<Inventory> inventory() = 0;

    /// All jobs of the calling user that slurmctld still has (pending, running, and ended less than
    /// MinJobAge ago). One RPC.
    virtual Result<std::vector<Job>> own_jobs() = 0;
    /// The same, but `unreachable` after about `patience` if the controller does not respond: for
    /// optional information that is not worth a long wait.
    virtual Result<std::vector<Job>> own_jobs_within(std::chrono::seconds patience)
    {
        (void)patience;
        return own_jobs();
    }

    /// All jobs that slurmctld still has and shows to the calling user, with the GPUs held by
    /// running jobs. One RPC with a large response on a busy cluster: call it only at a user's
    /// request.
    virtual Result<AllJobs> all_jobs() = 0;

    /// `missing` when slurmctld responds but does not know the job.
    virtual Result<Job> job(JobId id) = 0;

    /// False when the first step of an allocation made by start_now has ended or was never started;
    /// `missing` when slurmctld responds but does not know the job.
    virtual Result<bool> has_first_step(JobId id) = 0;

    /// Allocates immediately and starts `step` on the first node of the allocation, with its
    /// streams on pipes. The step's client runs in its own session and outlives the caller, so that
    /// a SIGKILL of the caller cannot leave an allocation without its step. `busy`: no such
    /// resources at the moment (use submit); `denied`: never possible, with Slurm's message.
    ///
    /// `before` (may be empty) is work that must be finished before the request is sent to Slurm.
    /// It runs while the requesting process initializes; if it fails, its error is returned.
    using Before = std::function<Result<void>()>;
    struct Started {
        JobId job;
        StepProcess process;
    };
    virtual Result<Started> start_now(const JobSpec& spec, const std::vector<std::string>& step,
                                      bool with_input, const Before& before) = 0;

    /// Submits a batch job; returns when slurmctld has accepted it. `denied` with Slurm's message.
    /// `environment` holds NAME=VALUE.
    virtual Result<JobId> submit(const JobSpec& spec, const std::string& script,
                                 const std::vector<std::string>& environment) = 0;

    /// Starts another step on the first node of a running job, sharing its resources (--overlap).
    /// The client runs in its own session, with the streams on pipes.
    virtual Result<StepProcess> start_step(JobId id, const std::vector<std::string>& step,
                                           bool with_input) = 0;

    /// The same without input, once on every node but the first of a job with `nodes` nodes; the
    /// streams of all nodes are merged.
    virtual Result<StepProcess> start_step_elsewhere(JobId id, const std::vector<std::string>& step,
                                                     int nodes) = 0;

    /// Detaches from a running step: kills the client process that carries its streams without
    /// ending the step. Only valid after the step has sent its first bytes. The caller must still
    /// close the descriptors.
    virtual void abandon(const StepProcess& process) = 0;

    /// Like scancel: TERM, then KILL after KillWait. Succeeds if the job has already ended.
    virtual Result<void> cancel(JobId id) = 0;
    /// The same for a value of Job::called or a number: an entire array or a part of it.
    virtual Result<void> cancel_called(const std::string& called) = 0;

    /// Changes the time limit of a job, counted from its start. `missing` when slurmctld does not
    /// know the job; `denied` with its message: the owner of a running job can only reduce the
    /// limit.
    virtual Result<void> set_walltime(JobId id, std::chrono::minutes walltime) = 0;

    /// Ends an allocation with an exit status (0..255), from inside or outside. Succeeds if it has
    /// already ended.
    virtual Result<void> complete(JobId id, int exit_status) = 0;
};

/// A finished job, from slurmdbd.
struct PastJob {
    JobId id;
    std::string name;
    std::uint32_t uid = 0;
    std::string comment;
    JobState state = JobState::unknown;
    int exit_status = 0;                       ///< 128+N for signal N
    std::optional<std::uint32_t> cancelled_by; ///< uid
    std::optional<Time> started_at;
    std::optional<Time> ended_at;
};

/// Selects the jobs that ran between `from` and `to`; of all users if `users` is empty.
struct UseQuestion {
    Time from;
    Time to;
    std::vector<std::string> users;
    std::vector<std::string> accounts;
};

/// Resources of one job within the time span of a question. A requeued job has one entry for each
/// time it ran, a job array one for each task.
struct JobUse {
    JobId id;
    std::string user;
    std::string account;
    std::string queue;
    std::chrono::seconds elapsed{0}; ///< within the span, not counting suspension
    int gpus = 0;                    ///< allocated, all models together
    /// Per model, if the site accounts for models (AccountingStorageTRES=gres/gpu:k80).
    std::vector<std::pair<std::string, int>> models;
    bool operator==(const JobUse&) const = default;
};

/// A limit on accumulated GPU time (GrpTRESMins=gres/gpu).
struct GpuGrant {
    std::string holder; ///< owner of the limit: the account, a parent account, or `USER in ACCOUNT`
    std::chrono::minutes granted{0};
    std::optional<std::chrono::seconds> used; ///< nullopt where Slurm does not count it
    bool operator==(const GpuGrant&) const = default;
};

/// GPU time limits of one account of a user; the tightest one is effective.
struct AccountGrants {
    std::string account;
    bool complete = true; ///< false: Slurm hides some of the parent accounts (PrivateData)
    std::vector<GpuGrant> limits;
    bool operator==(const AccountGrants&) const = default;
};

/// Node failures recorded in accounting.
struct NodeHistory {
    struct Failure {
        std::string node;
        Time at;
        bool operator==(const Failure&) const = default;
    };
    Time since; ///< start of the recorded period: the requested time or the cluster's first day
    std::vector<Failure> failures;
};

class Accounting {
public:
    virtual ~Accounting() = default;
    /// The record of `id`; `missing` when accounting responds but has no record; `unreachable` when
    /// the cluster has no accounting or it is down.
    virtual Result<PastJob> past_job(JobId id) = 0;

    /// Allocated resources of all jobs of the cluster that ran in the span; running jobs count up
    /// to `to` or now. Accounting shows each user only the jobs that the site permits
    /// (PrivateData). An
    /// unknown user or account is `missing`, so that it is not reported as zero use; `unreachable`
    /// as above.
    virtual Result<std::vector<JobUse>> use(const UseQuestion& question) = 0;

    /// The GPU time limits of each account of `user`, as counted by the controller, in one RPC.
    /// `missing` when Slurm has no account of `user`; `unreachable` as above.
    virtual Result<std::vector<AccountGrants>> grants(const std::string& user) = 0;

    /// Nodes of this cluster that went down between the two times for any reason, ending the jobs
    /// on them. `unreachable` as above.
    virtual Result<NodeHistory> node_failures(Time from, Time to) = 0;
};

} // namespace gpuq
