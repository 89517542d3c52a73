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

/// A job as slurmctld hands it to job_submit, whoever sent it: what is not set was not asked for.
/// The names are those of slurm.h's job_desc_msg_t.
struct Submission {
    std::string user_name;
    std::string account;                  ///< the default one when none was asked for; may be empty
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
    std::optional<std::uint32_t> core_spec, thread_spec; ///< -S; Slurm 22.05 does not show them
    std::string tres_per_job, tres_per_node, tres_per_task, tres_per_socket;
    std::optional<std::uint32_t> min_cpus; ///< of the whole job
    std::optional<std::uint32_t> cpus_per_task;
    std::optional<std::uint32_t> pn_min_cpus;
    std::optional<std::uint32_t> min_mem_per_node, min_mem_per_cpu; ///< MiB; 0: all there is
    std::string cpus_per_tres, mem_per_tres;
    std::optional<std::uint32_t> shared; ///< slurm.h's enum job_shared: 0, 2 and 3 are --exclusive
    std::string comment;                 ///< of a run of gpuq it begins as core/comment.h says
    std::optional<std::uint32_t> het_job_offset; ///< it is this part of a heterogeneous job
    bool operator==(const Submission&) const = default;
};

/// Slurm's INFINITE.
constexpr std::uint32_t k_unlimited = 0xffffffff;

/// Asks for so much on each node, in the fields that sbatch sets for -c and --mem.
void ask_for(Submission& job, std::optional<int> cpus, std::optional<std::uint64_t> memory_mib);

/// The GPUs that a job asks for.
struct GpusAsked {
    std::uint64_t total = 0;         ///< of the whole job, at least
    std::uint64_t most = 0;          ///< of the whole job, on as many nodes as it accepts (-N 1-4)
    std::uint64_t per_node = 0;      ///< that a node has to have; 0: Slurm may spread them
    std::vector<std::string> models; ///< those named, each once, in order
    bool operator==(const GpusAsked&) const = default;
};

/// What a job asks for beside GPUs.
struct SizeAsked {
    std::uint64_t cpus = 0;       ///< of the whole job, as it asks for them
    std::uint64_t allocated = 0;  ///< CPUs of the cores that Slurm allocates for it
    std::uint64_t memory_mib = 0; ///< of the whole job
    bool all_memory = false;      ///< --mem=0
    bool whole_nodes =
        false; ///< --exclusive: Slurm gives it all GPUs of its nodes (seen with 22.05)
    bool no_other_user = false; ///< --exclusive=user, =mcs: keeps others off GPUs that it has not
};

/// How Slurm may lay a job out on nodes. It allocates whole cores, and with a core all of its
/// threads, whether the job uses them or not (seen with 22.05: -c 4 --threads-per-core=1 gets 8).
struct NodeLayout {
    int threads_per_core = 1;
    /// As many nodes as a job can get here. What it asks for on each node counts on all that Slurm
    /// may choose: --gpus=4 without -N may get four nodes. 1: count on the fewest.
    std::uint64_t most_nodes = 1;
    /// GPUs of one node. Slurm 24.11 and later give each node of a job the CPUs of the node with
    /// the most GPUs when the job states only a total: --gpus=4 -N 2 may get 3 + 1 GPUs and the
    /// CPUs of 3 + 3 (seen with 24.11.5; 22.05 gives those of 3 + 1). 0: count on an even layout.
    std::uint64_t gpus_per_node = 0;
};

/// `cpus_per_gpu`: what Slurm gives with each GPU to a job that says nothing of CPUs.
SizeAsked size_asked(const Submission& job, const GpusAsked& gpus, std::uint64_t cpus_per_gpu,
                     NodeLayout layout = {});

/// All four fields are read, in both of Slurm's spellings (`gres:gpu:2`, `gres/gpu:2`). They speak
/// of the same GPUs, so the one that comes to the most counts: --gpus=4 --gpus-per-node=2 is four.
/// Without any of them, --ntasks-per-gpu makes GPUs of the number of tasks (gres.c of 22.05).
GpusAsked gpus_asked(const Submission& job);

/// The GPUs in one of Slurm's TRES texts; other resources are left out. Slurm refuses what is
/// malformed, so that counts as 0.
std::vector<GpuCount> gpus_in_tres(std::string_view tres);

/// The job by the names that job_submit.lua knows; what was not asked for is not there.
std::map<std::string, std::variant<std::string, std::uint32_t>> fields_of(const Submission& job);

/// `4`, `k80`, `k80:4`, `k80:2,p100:2`. `usage` for anything else.
Result<std::vector<GpuCount>> parse_gpu_counts(std::string_view text);

} // namespace gpuq::policy
