// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"
#include "core/ids.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

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
constexpr JobState last_of(JobState)
{
    return JobState::unknown;
}

/// True when no process of the job can still be running.
bool is_over(JobState state);

/// GPUs of one model that a job holds on one node.
struct HeldGpus {
    std::string node;
    std::string model; ///< empty when Slurm has no type
    int count = 0;
    bool operator==(const HeldGpus&) const = default;
};

/// Shares of the GPUs of one model that a job holds on one node.
struct HeldShares {
    std::string node;
    std::string model; ///< empty when Slurm has no type
    GpuShare::Kind kind = GpuShare::Kind::shard;
    int parts = 0;
    std::vector<int> gpus; ///< indices of the GPUs to which they belong; empty: not reported
    bool operator==(const HeldShares&) const = default;
};

/// What a job holds of the GPUs of its nodes.
struct HeldByJob {
    std::vector<HeldGpus> whole;
    std::vector<HeldShares> shares;
    bool operator==(const HeldByJob&) const = default;
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
    std::optional<GpuShare> share{}; ///< of one GPU of each node; `parts` of a node
    bool spreads = false;            ///< its GPUs may span more nodes than `nodes` (`--gpus`)
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
    HeldByJob held;                        ///< running job
    /// The name used by Slurm's commands where it is not the id: a task of an array (`20_3`), the
    /// pending tasks of one (`20_[4-9%2]`), a component of a heterogeneous job (`20+1`).
    std::string called;
    JobSize size;
    JobFiles files;
    std::string account;
    std::string qos;
    bool operator==(const Job&) const = default;
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
    std::optional<GpuShare> share; ///< instead of whole GPUs
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

} // namespace gpuq
