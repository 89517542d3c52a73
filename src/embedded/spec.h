// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpuq::embedded {

/// One GPU of a node: Slurm's type (may be empty) and its device file.
struct GpuDevice {
    std::string model;
    std::string file;
    bool operator==(const GpuDevice&) const = default;
};

/// A node of a policy or of a site's slurm.conf.
struct NamedNode {
    std::string name;
    std::vector<GpuDevice> gpus;
    int threads_per_core = 1;
    std::string attributes{}; ///< from slurm.conf: CPUs, RealMemory, Feature, Weight ...
    int shards = 0;           ///< as in ClusterSpec
    bool operator==(const NamedNode&) const = default;
};

/// How jobs are limited to their allocation.
enum class Confinement {
    parents, ///< by process ancestry only (proctrack/linuxproc); works without root
    cgroups, ///< proctrack/cgroup and task/cgroup: limits memory and devices as well
};

/// Description of a cluster on this machine: everything its configuration contains except paths and
/// ports. Each node is this machine under another name.
struct ClusterSpec {
    std::string name = "local";    ///< ClusterName
    std::string node_prefix = "n"; ///< nodes are PREFIX0, PREFIX1, ...
    int nodes = 1;
    std::vector<GpuDevice> gpus; ///< per node
    bool stand_ins = false;      ///< the devices are not GPUs
    int shards = 0;              ///< shares (gres/shard) of each GPU; 0: GPUs are not shared
    int cpus = 1;                ///< per node
    std::string topology;        ///< Boards=... of the hardware; empty for stand-ins
    std::uint64_t memory_mib = 1024;
    Confinement confinement = Confinement::parents;
    std::string cgroup_plugin{};            ///< of this machine: cgroup/v1, cgroup/v2 or empty
    std::string slurm_release{};            ///< of slurmd: `22.05`; empty if unknown
    std::string user = "root";              ///< SlurmUser
    std::vector<std::string> extra_lines{}; ///< appended to slurm.conf unchanged
    std::vector<NamedNode> named{};         ///< the nodes, if they differ
    std::vector<std::string> conf_lines{};  ///< of the site's slurm.conf, with its partitions
    std::vector<std::string> conf_qos{};    ///< named in them
    bool policy = false;                    ///< partitions and limits are those of a policy
    bool accounting = true;                 ///< slurm.conf uses slurmdbd

    std::string node(int index) const
    {
        return named.empty() ? node_prefix + std::to_string(index)
                             : named.at(static_cast<std::size_t>(index)).name;
    }
    int threads_of(int index) const
    {
        return named.empty() ? 1 : named.at(static_cast<std::size_t>(index)).threads_per_core;
    }
    std::string attributes_of(int index) const
    {
        return named.empty() ? "" : named.at(static_cast<std::size_t>(index)).attributes;
    }
    const std::vector<GpuDevice>& gpus_of(int index) const
    {
        return named.empty() ? gpus : named.at(static_cast<std::size_t>(index)).gpus;
    }
    int shards_of(int index) const
    {
        return named.empty() ? shards : named.at(static_cast<std::size_t>(index)).shards;
    }
    bool has_shards() const
    {
        for (int index = 0; index < nodes; ++index) {
            if (shards_of(index) > 0) {
                return true;
            }
        }
        return false;
    }
    std::size_t gpus_on(const std::string& host) const
    {
        for (const NamedNode& one : named) {
            if (one.name == host) {
                return one.gpus.size();
            }
        }
        return gpus.size();
    }
    bool operator==(const ClusterSpec&) const = default;
};

/// TCP ports on the loopback interface.
struct Ports {
    int controller = 0;
    int accounting = 0;
    std::vector<int> nodes;
    bool operator==(const Ports&) const = default;
};

} // namespace gpuq::embedded
