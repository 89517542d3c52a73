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

/// A Slurm partition as a door to nodes. The further partitions of a queue of a gpuq policy, which
/// lead to its other pools, are none: their nodes are the queue's, and the longest time of grace.
struct Partition {
    std::string name;
    std::optional<std::chrono::minutes> max_time; ///< nullopt: no limit
    std::optional<std::chrono::minutes> default_time;
    bool is_default = false;
    bool up = true;
    bool ruled = false; ///< a queue of a gpuq policy: several may be named, the first that takes a
                        ///< job gets it (man gpuq-policy(5))
    std::string nodes;  ///< Slurm's host list expression
    std::optional<int> most_nodes; ///< that one job can have; nullopt: not known
    std::string submit_hosts;      ///< AllocNodes, as written: who may submit; empty: any host
    /// What a job that is preempted here has left to save and go; 0: nothing, or none is preempted.
    std::chrono::seconds grace{0};
};

/// GPUs of one model on one node.
struct NodeGpus {
    std::string model; ///< empty when Slurm knows no type
    int total = 0;
    std::optional<int> in_use; ///< unknown when Slurm did not say
    bool operator==(const NodeGpus&) const = default;
};

struct Node {
    std::string name;
    std::vector<NodeGpus> gpus;
    std::vector<std::string> partitions;
    bool up = true; ///< takes new jobs
    int cpus = 0;
    std::uint64_t memory_mib = 0;
    bool reserved = false;          ///< in a reservation that has begun: not for everybody
    std::optional<int> cpus_in_use; ///< unknown when Slurm did not say
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

/// True when no process of the job is left to run.
bool is_over(JobState state);

/// GPUs of one model that a job holds on one node.
struct HeldGpus {
    std::string node;
    std::string model; ///< empty when Slurm knows no type
    int count = 0;
    bool operator==(const HeldGpus&) const = default;
};

/// GPUs of one model that a job asks for on all its nodes together.
struct AskedGpus {
    std::string model; ///< empty: any
    int count = 0;
    bool operator==(const AskedGpus&) const = default;
};

/// How much a pending job asks for and a running one has.
struct JobSize {
    int nodes = 1;                ///< at least
    int cpus = 0;                 ///< on all nodes together; 0: not known
    std::uint64_t memory_mib = 0; ///< on all nodes together; 0: not known
    std::vector<AskedGpus> gpus;
    bool whole_nodes = false;   ///< shares its nodes with no other job
    std::string only_nodes;     ///< host list; empty: any
    std::string excluded_nodes; ///< host list
    /// What else it asks for that gpuq does not compare with the nodes: `features`, ...
    std::string other;
    bool spreads = false; ///< its GPUs may be on more nodes than `nodes` (`--gpus`)
    bool operator==(const JobSize&) const = default;
};

/// Files of a job, as slurmctld resolves them (`%j`); empty where it has none.
struct JobFiles {
    std::string script; ///< of a batch job, as it was named
    std::string work_dir;
    std::string output; ///< absolute; `error` is the same file unless the job names another
    std::string error;
    bool operator==(const JobFiles&) const = default;
};

/// One job as slurmctld knows it.
struct Job {
    JobId id;
    std::string name;
    std::string partition;
    std::string comment;
    JobState state = JobState::unknown;
    std::optional<JobState> outcome; ///< of a completing job: what it will be
    std::string reason;              ///< Slurm's word: Priority, Resources, ...; empty when none
    std::optional<int> exit_status;  ///< of an ended job, 128+N for signal N
    std::optional<Time> submitted_at;
    std::optional<Time> started_at; ///< of a pending job: the expected start, when Slurm has one
    std::optional<Time> ends_at;    ///< of a running job: its limit, if it has one; of an ended
                                    ///< one: its end
    std::optional<std::chrono::minutes> walltime; ///< its time limit; unset: none, or not told
    std::string nodes;                            ///< host list, empty while pending
    std::string batch_host;                       ///< node of step 0 or of the script
    int gpus = 0;
    bool batch = false; ///< has a batch script; else an allocation that somebody has to end
    std::uint32_t uid = 0;
    std::optional<std::uint32_t> priority; ///< of a pending job: the highest goes first; 0: held
    std::vector<HeldGpus> held;            ///< of a running job
    /// What Slurm's commands call it, where that is not its id: a task of an array (`20_3`), those
    /// of one that wait (`20_[4-9%2]`), a component of a heterogeneous job (`20+1`).
    std::string called;
    JobSize size;
    JobFiles files;
    std::string account;
    std::string qos;
    bool operator==(const Job&) const = default;
};

/// Queues and nodes at one moment.
struct Inventory {
    std::vector<Partition> partitions;
    std::vector<Node> nodes;
};

/// The jobs of everybody.
struct AllJobs {
    std::vector<Job> jobs;
    bool complete = true; ///< false: the site hides the jobs of others from the caller
};

/// What is asked of Slurm. gpuq's comment and `--no-requeue` are part of every job.
struct JobSpec {
    std::string name;
    std::string partition;
    std::string comment; ///< job_comment(key)
    std::string work_dir;
    std::string output;               ///< batch: absolute path for what the script itself says,
                                      ///< appended to; empty: /dev/null
    std::chrono::minutes walltime{0}; ///< 0: the partition's default
    int nodes = 1;
    int tasks_per_node = 1;
    int gpus_per_node = 0;
    std::optional<std::string> gpu_model;
    std::optional<int> cpus_per_node;
    std::optional<std::uint64_t> memory_mib_per_node;
    std::optional<std::string> account;
    std::optional<std::string> qos;
    std::optional<JobId> after_ok;    ///< starts when that job has ended well, else never
    std::optional<JobId> after_any;   ///< starts when that job is over, however it ended
    std::chrono::seconds pause{0};    ///< not before so long from now
    std::vector<std::string> exclude; ///< nodes that are not to be used
    bool by_sbatch = false; ///< batch: the script has #SBATCH lines, which only sbatch can read
};

/// A step's own client process (an srun) that carries its standard streams.
/// `input` may be -1 (the step reads /dev/null). The holder closes the descriptors.
struct StepProcess {
    int pid = -1;
    std::uint64_t born = 0; ///< when it was started, in the kernel's ticks: tells a reused pid
    int input = -1;
    int output = -1;
    int error = -1; ///< srun's own words as well as the task's stderr
};

/// What a controller says of itself and of its configuration.
struct Controller {
    std::string version;              ///< slurmctld's release: 22.05.8
    std::string library;              ///< the release of the libslurm that gpuq was built with
    std::optional<Time> now;          ///< its clock when it answered, to the second
    std::string scheduler_parameters; ///< SchedulerParameters, as written
    std::chrono::seconds kill_wait{0};
    std::chrono::seconds inactive_limit{0}; ///< 0: none
    bool keeps_accounting = false;
};

/// Jobs, partitions, nodes and steps of one cluster. Calls block for up to Slurm's MessageTimeout
/// (10 s by default); one thread at a time.
///
/// `unreachable` always means that the outcome is not known: the request may have been carried out.
class Cluster {
public:
    virtual ~Cluster() = default;

    /// ClusterName. No RPC.
    virtual Result<std::string> name() = 0;

    virtual Result<Controller> controller() = 0;
    virtual Result<std::vector<Partition>> partitions() = 0;
    virtual Result<std::vector<Node>> nodes() = 0;
    /// Both. Two RPCs, one for each.
    virtual Result<Inventory> inventory() = 0;

    /// Every job of the calling user that slurmctld still remembers (pending, running, and ended
    /// for less than MinJobAge). One RPC.
    virtual Result<std::vector<Job>> own_jobs() = 0;
    /// The same, `unreachable` after about `patience` where the controller is silent: for what is
    /// worth less than a wait.
    virtual Result<std::vector<Job>> own_jobs_within(std::chrono::seconds patience)
    {
        (void)patience;
        return own_jobs();
    }

    /// Every job that slurmctld still remembers and shows to the calling user, with what the
    /// running ones hold. One RPC, and a large answer on a busy cluster: only when a person asks.
    virtual Result<AllJobs> all_jobs() = 0;

    /// `missing` when slurmctld, which answered, does not know the job.
    virtual Result<Job> job(JobId id) = 0;

    /// False when the first step of an allocation, which start_now made, is over, or was never
    /// there; `missing` when slurmctld, which answered, does not know the job.
    virtual Result<bool> has_first_step(JobId id) = 0;

    /// Allocates at once and starts `step` on the first node of the allocation, its streams on
    /// pipes, in a session of its own that outlives the caller: a SIGKILL of the caller after this
    /// was called can't leave an allocation without its step.
    /// `busy`: no such resources at this moment (ask submit); `denied`: never, with Slurm's words.
    ///
    /// `before` (may be empty) is what has to be done before anything is asked of Slurm. It is
    /// called here, while the process that will ask gets ready; when it fails, its error is the
    /// answer.
    using Before = std::function<Result<void>()>;
    struct Started {
        JobId job;
        StepProcess process;
    };
    virtual Result<Started> start_now(const JobSpec& spec, const std::vector<std::string>& step,
                                      bool with_input, const Before& before) = 0;

    /// Queues a batch job; returns when slurmctld has accepted it. `denied` with Slurm's words.
    /// `environment` is NAME=VALUE.
    virtual Result<JobId> submit(const JobSpec& spec, const std::string& script,
                                 const std::vector<std::string>& environment) = 0;

    /// Starts another step on the first node of a running job, sharing its resources (--overlap),
    /// in a session of its own, streams on pipes.
    virtual Result<StepProcess> start_step(JobId id, const std::vector<std::string>& step,
                                           bool with_input) = 0;

    /// The same, without input, once on each node of a job of `nodes` but the first; their streams
    /// come as one.
    virtual Result<StepProcess> start_step_elsewhere(JobId id, const std::vector<std::string>& step,
                                                     int nodes) = 0;

    /// Leaves a running step to itself: kills the client process that carries its streams in such
    /// a way that the step does not notice. Only after the step has sent its first bytes. The
    /// descriptors stay the caller's to close.
    virtual void abandon(const StepProcess& process) = 0;

    /// scancel: TERM, then KILL after KillWait. Success also when it has ended already.
    virtual Result<void> cancel(JobId id) = 0;
    /// The same for what Job::called may be, and a number: a whole array or a part of it.
    virtual Result<void> cancel_called(const std::string& called) = 0;

    /// Gives a job another time limit, counted from its start. `missing` when slurmctld does not
    /// know the job, `denied` with its words: a running job's owner may only shorten it.
    virtual Result<void> set_walltime(JobId id, std::chrono::minutes walltime) = 0;

    /// Ends an allocation with an exit status (0..255), from inside or outside of it.
    /// Success also when it has ended already.
    virtual Result<void> complete(JobId id, int exit_status) = 0;
};

/// Finished jobs, from slurmdbd.
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

/// What jobs to count: those that ran between `from` and `to`, of everybody when nobody is named.
struct UseQuestion {
    Time from;
    Time to;
    std::vector<std::string> users;
    std::vector<std::string> accounts;
};

/// What one job had between the two times of a question: a job that was requeued has one for each
/// time it ran, each task of an array has its own.
struct JobUse {
    JobId id;
    std::string user;
    std::string account;
    std::string queue;
    std::chrono::seconds elapsed{0}; ///< within the span, without the time it was suspended
    int gpus = 0;                    ///< allocated, of all models together
    /// Of each model, as far as the site accounts for models (AccountingStorageTRES=gres/gpu:k80).
    std::vector<std::pair<std::string, int>> models;
    bool operator==(const JobUse&) const = default;
};

/// A limit on GPU time that is used up (GrpTRESMins=gres/gpu).
struct GpuGrant {
    std::string holder; ///< whose it is: the account, one above it, or `USER in ACCOUNT`
    std::chrono::minutes granted{0};
    std::optional<std::chrono::seconds> used; ///< nothing where Slurm does not count
    bool operator==(const GpuGrant&) const = default;
};

/// What limits the GPU time of one account of a user; the account is no more than the tightest.
struct AccountGrants {
    std::string account;
    bool complete = true; ///< false: Slurm does not show all accounts above it (PrivateData)
    std::vector<GpuGrant> limits;
    bool operator==(const AccountGrants&) const = default;
};

/// Which nodes went down, as accounting has noted it.
struct NodeHistory {
    struct Failure {
        std::string node;
        Time at;
        bool operator==(const Failure&) const = default;
    };
    Time since; ///< from when on it would know: the time asked for, or the cluster's first day
    std::vector<Failure> failures;
};

class Accounting {
public:
    virtual ~Accounting() = default;
    /// The record of `id`; `missing` when accounting, which answered, has none; `unreachable`
    /// when there is no accounting or it is down.
    virtual Result<PastJob> past_job(JobId id) = 0;

    /// Every job of the cluster that ran in the span, out of its allocated resources. Running ones
    /// count up to `to` or now. Accounting shows each user what the site lets them see
    /// (PrivateData). `missing` names a user or an account that is not known, for nothing is not 0;
    /// `unreachable` as above.
    virtual Result<std::vector<JobUse>> use(const UseQuestion& question) = 0;

    /// What Slurm lets each account of `user` spend on GPUs, as the controller counts it: one
    /// question to it. `missing` when it knows no account of `user`; `unreachable` as above.
    virtual Result<std::vector<AccountGrants>> grants(const std::string& user) = 0;

    /// The nodes of this cluster that went down between the two times, whatever the reason: what
    /// ran on them ended. `unreachable` as above.
    virtual Result<NodeHistory> node_failures(Time from, Time to) = 0;
};

} // namespace gpuq
