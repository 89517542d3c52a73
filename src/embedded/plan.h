// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/spec.h"
#include "policy/policy.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::embedded {

/// What the caller of `up` asked for; the rest is as it was the last time, or as the machine is.
struct Wishes {
    std::optional<std::string> name;
    std::optional<std::string> node_prefix;
    std::optional<int> nodes;
    std::optional<int> gpus; ///< stand-ins
    std::optional<std::string> model;
    std::optional<Confinement> confinement;
    std::vector<std::string> extra_lines; ///< of slurm.conf; replace the former ones
    std::optional<std::string> policy;    ///< the text of one, without errors

    bool operator==(const Wishes&) const = default;
};

/// What a plan needs to know of this machine.
struct MachineFacts {
    int cores = 1;
    std::uint64_t memory_mib = 1024;
    std::string topology; ///< as slurmd -C tells it, may be empty
    std::vector<GpuDevice> gpus;
    std::string cgroup_plugin;    ///< cgroup/v1 or cgroup/v2; empty when Slurm can use neither here
    std::string cgroups_obstacle; ///< why it can not
    std::string slurm_release;    ///< of slurmd: `22.05`; empty when not known
    bool is_root = false;
    std::string user;
};

/// The wishes that give `former` again, under `wishes`.
Wishes merge(const Wishes& wishes, const ClusterSpec& former);

/// What a policy's nodes have to be like, as far as stand-ins are concerned.
struct NodesOfPolicy {
    std::vector<policy::Pool> pools; ///< empty: the policy is for all nodes, whichever
    int cpus_per_gpu = 1;
    std::uint64_t memory_per_gpu = 0; ///< MiB
};
/// `usage` for a policy with errors, and for pools that do not say what GPUs they have.
Result<NodesOfPolicy> nodes_of_policy(const std::string& text);

/// Gives every node of the pools its name, and of `stand_ins` as many as it has GPUs.
void use_pools(ClusterSpec& spec, const NodesOfPolicy& nodes,
               const std::vector<GpuDevice>& stand_ins);

/// `usage` with a sentence for what can not be: names Slurm would not take, cgroups without root,
/// no GPUs and none asked for. `stand_ins` are the devices for `wishes.gpus`.
Result<ClusterSpec> plan(const Wishes& wishes, const MachineFacts& machine,
                         const std::vector<GpuDevice>& stand_ins);

/// `2 nodes with 4 GPUs each (k80, stand-ins)`.
std::string describe(const ClusterSpec& spec);

} // namespace gpuq::embedded
