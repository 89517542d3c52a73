// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "policy/policy.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gpuq::policy {

/// Slurm's --gpus, --gres and the like: tres_per_job, ..., cpus_per_tres (--cpus-per-gpu) and
/// mem_per_tres.
struct SubmittedTres {
    std::string per_job, per_node, per_task, per_socket;
    std::string cpus, mem;
    bool bound = false; ///< --gres-flags=enforce-binding
    bool operator==(const SubmittedTres&) const = default;
};

/// A job as slurmctld passes it to job_submit, whichever client submitted it; unset fields were not
/// requested. Names as in slurm.h's job_desc_msg_t.
struct Submission {
    std::string user_name;
    std::string account;                  ///< the default one if none was requested; may be empty
    std::optional<std::string> partition; ///< may be a list
    std::optional<std::string> qos;
    std::optional<std::string> reservation;
    std::optional<std::uint32_t> time_limit; ///< minutes; k_unlimited
    std::optional<std::uint32_t> min_nodes, max_nodes;
    std::optional<std::uint32_t> num_tasks;
    std::optional<std::uint32_t> ntasks_per_node;
    std::optional<std::uint32_t> sockets_per_node;
    std::optional<std::uint32_t> ntasks_per_tres; ///< --ntasks-per-gpu
    std::optional<std::uint32_t> ntasks_per_core;
    std::optional<std::uint32_t> threads_per_core;       ///< also set by --hint and -B
    std::optional<std::uint32_t> core_spec, thread_spec; ///< -S; not available in Slurm 22.05
    SubmittedTres tres;
    std::optional<std::uint32_t> min_cpus; ///< of the whole job
    std::optional<std::uint32_t> cpus_per_task;
    std::optional<std::uint32_t> pn_min_cpus;
    std::optional<std::uint32_t> min_mem_per_node, min_mem_per_cpu; ///< in MiB; 0: all memory
    std::optional<std::uint32_t> shared; ///< slurm.h's enum job_shared: 0, 2 and 3 are --exclusive
    std::string comment; ///< for a run of gpuq, begins as described in core/comment.h
    std::optional<std::uint32_t> het_job_offset; ///< the job is this part of a heterogeneous job
    bool operator==(const Submission&) const = default;
};

/// Slurm's INFINITE.
constexpr std::uint32_t k_unlimited = 0xffffffff;

/// Requests these amounts on each node, in the fields that sbatch sets for -c and --mem.
void ask_for(Submission& job, std::optional<int> cpus, std::optional<std::uint64_t> memory_mib);

/// The GPUs that a job requests.
struct GpuTotals {
    std::uint64_t total = 0;         ///< of the whole job, at least
    std::uint64_t most = 0;          ///< of the whole job, on as many nodes as it accepts (-N 1-4)
    std::uint64_t per_node = 0;      ///< required on each node; 0: Slurm may spread them
    std::vector<std::string> models; ///< the requested models, each once, in order
    bool shares = false;             ///< shares of GPUs: gres/shard, gres/mps, in any number
    /// Number of shares (gres/shard) of a job that requests nothing else of GPUs, per node, on one
    /// node. 0: none, or in another form, whose number Slurm may multiply.
    std::uint64_t parts = 0;
    bool operator==(const GpuTotals&) const = default;
};

/// The resources other than GPUs that a job requests.
struct JobSize {
    std::uint64_t cpus = 0;       ///< of the whole job, as requested
    std::uint64_t allocated = 0;  ///< CPUs of the cores that Slurm allocates
    std::uint64_t memory_mib = 0; ///< of the whole job
    bool all_memory = false;      ///< --mem=0
    bool whole_nodes = false;     ///< --exclusive: gets all GPUs of its nodes (observed with 22.05)
    bool no_other_user = false;   ///< --exclusive=user, =mcs: others can't use the remaining GPUs
};

/// How Slurm may distribute a job over nodes. It allocates whole cores with all of their threads,
/// whether or not the job uses them (observed with 22.05: -c 4 --threads-per-core=1 gets 8).
struct NodeLayout {
    int threads_per_core = 1;
    /// The maximum number of nodes that a job can get in this queue. Requests per node count for
    /// all nodes that Slurm may choose: --gpus=4 without -N may get four nodes. 1: count the
    /// minimum number of nodes.
    std::uint64_t most_nodes = 1;
    /// GPUs of one node. Slurm 24.11 and later give each node of a job the CPUs of the node with
    /// the most GPUs when the job states only a total: --gpus=4 -N 2 may get 3 + 1 GPUs and the
    /// CPUs of 3 + 3 (seen with 24.11.5; 22.05 gives those of 3 + 1). 0: count on an even layout.
    std::uint64_t gpus_per_node = 0;
};

/// `cpus_per_gpu`: CPUs that Slurm allocates with each GPU for a job that does not specify CPUs.
JobSize job_size(const Submission& job, const GpuTotals& gpus, std::uint64_t cpus_per_gpu,
                 NodeLayout layout = {});

/// Reads all four fields, in both of Slurm's notations (`gres:gpu:2`, `gres/gpu:2`). They describe
/// the same GPUs, so the one with the largest total counts: --gpus=4 --gpus-per-node=2 is four.
/// Without any of them, --ntasks-per-gpu derives the GPUs from the number of tasks (gres.c of
/// 22.05).
GpuTotals gpu_totals(const Submission& job);

/// Whether a TRES string names shares of GPUs.
bool has_shares(std::string_view tres);

/// The GPUs in a TRES string; other resources are ignored. A malformed item counts as 0, since
/// Slurm refuses it.
std::vector<GpuCount> gpus_in_tres(std::string_view tres);

/// The job by the names used in job_submit.lua; fields that were not requested are absent.
std::map<std::string, std::variant<std::string, std::uint32_t>> fields_of(const Submission& job);

/// `4`, `k80`, `k80:4`, `k80:2,p100:2`. `usage` for anything else.
Result<std::vector<GpuCount>> parse_gpu_counts(std::string_view text);

} // namespace gpuq::policy
