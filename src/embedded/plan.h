// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/site_conf.h"
#include "embedded/spec.h"
#include "policy/policy.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::embedded {

/// Slurm's type for simulated GPUs that are shared, if no model is given. Slurm 22.05 gives a GPU
/// without a type to a job as a whole while other jobs hold shares of it (observed).
constexpr const char* k_shared_model = "generic";

/// Options of `up`. Unset ones default to those of the last start, or to the machine's properties.
struct Wishes {
    std::optional<std::string> name;
    std::optional<std::string> node_prefix;
    std::optional<int> nodes;
    std::optional<int> gpus;   ///< number of stand-ins
    std::optional<int> shards; ///< of each GPU
    std::optional<std::string> model;
    std::optional<Confinement> confinement;
    std::vector<std::string> extra_lines; ///< lines for slurm.conf; they replace the previous ones
    std::optional<std::string> policy;    ///< text of a policy without errors
    std::optional<SiteConf> conf;         ///< nodes, partitions and settings of a site
    std::string script;                   ///< the job_submit.lua that belongs to them

    bool operator==(const Wishes&) const = default;
};

/// Properties of this machine that a plan depends on.
struct MachineFacts {
    int cores = 1;
    std::uint64_t memory_mib = 1024;
    std::string topology; ///< from slurmd -C; may be empty
    std::vector<GpuDevice> gpus;
    std::string cgroup_plugin;    ///< cgroup/v1 or cgroup/v2; empty if Slurm can use neither
    std::string cgroups_obstacle; ///< why it can use neither
    std::string slurm_release;    ///< of slurmd: `22.05`; empty if unknown
    bool is_root = false;
    std::string user;
};

/// Options that reproduce `former`, overridden by `wishes`.
Wishes merge(const Wishes& wishes, const ClusterSpec& former);

/// A policy's requirements for stand-in nodes.
struct NodesOfPolicy {
    std::vector<policy::Pool> pools; ///< empty: the policy applies to all nodes
    int cpus_per_gpu = 1;
    std::uint64_t memory_per_gpu = 0; ///< MiB
};
/// `usage` for a policy with errors, and for pools that do not specify their GPUs.
Result<NodesOfPolicy> nodes_of_policy(const std::string& text);

/// Names the nodes as in the pools, and gives each as many of `stand_ins` as it has GPUs.
void use_pools(ClusterSpec& spec, const NodesOfPolicy& nodes,
               const std::vector<GpuDevice>& stand_ins);

/// `usage` for impossible options: names that Slurm does not accept, cgroups without root, no GPUs
/// and none requested. `stand_ins`: the devices for `wishes.gpus`.
Result<ClusterSpec> plan(const Wishes& wishes, const MachineFacts& machine,
                         const std::vector<GpuDevice>& stand_ins);

/// `2 nodes with 4 GPUs each (k80, simulated, 4 shards per GPU)`.
std::string describe(const ClusterSpec& spec);

} // namespace gpuq::embedded
