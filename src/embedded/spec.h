// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpuq::embedded {

/// One GPU of every node: Slurm's type (may be empty) and the device that stands for it.
struct GpuDevice {
    std::string model;
    std::string file;
    bool operator==(const GpuDevice&) const = default;
};

/// A node with a name, GPUs and threads per core of its own, as a policy has them.
struct NamedNode {
    std::string name;
    std::vector<GpuDevice> gpus;
    int threads_per_core = 1;
    bool operator==(const NamedNode&) const = default;
};

/// How jobs are kept to their share.
enum class Confinement {
    parents, ///< by parent links only (proctrack/linuxproc): what works without root
    cgroups, ///< proctrack/cgroup and task/cgroup: memory and devices as well
};

/// What a cluster on this machine looks like: everything its configuration is made of but
/// places and ports. Every node is this machine under another name.
struct ClusterSpec {
    std::string name = "local";    ///< ClusterName
    std::string node_prefix = "n"; ///< nodes are PREFIX0, PREFIX1, ...
    int nodes = 1;
    std::vector<GpuDevice> gpus; ///< of each node
    bool stand_ins = false;      ///< the devices are no GPUs
    int cpus = 1;                ///< of each node
    std::string topology;        ///< Boards=... of the hardware, empty for stand-ins
    std::uint64_t memory_mib = 1024;
    Confinement confinement = Confinement::parents;
    std::string cgroup_plugin{};            ///< of this machine: cgroup/v1, cgroup/v2 or empty
    std::string slurm_release{};            ///< of slurmd: `22.05`; empty when not known
    std::string user = "root";              ///< SlurmUser
    std::vector<std::string> extra_lines{}; ///< appended to slurm.conf as they are
    std::vector<NamedNode> named{};         ///< the nodes, when they are not all alike
    bool policy = false;                    ///< partitions and limits are those of a policy
    bool accounting = true;                 ///< slurm.conf names slurmdbd

    std::string node(int index) const
    {
        return named.empty() ? node_prefix + std::to_string(index)
                             : named.at(static_cast<std::size_t>(index)).name;
    }
    int threads_of(int index) const
    {
        return named.empty() ? 1 : named.at(static_cast<std::size_t>(index)).threads_per_core;
    }
    const std::vector<GpuDevice>& gpus_of(int index) const
    {
        return named.empty() ? gpus : named.at(static_cast<std::size_t>(index)).gpus;
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
