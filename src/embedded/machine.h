// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/spec.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Properties of this machine that are relevant for a cluster.
namespace gpuq::embedded {

/// GPUs of the NVIDIA driver: /dev/nvidia0 ... with the model from /proc/driver/nvidia or
/// nvidia-smi. Empty when there are none.
std::vector<GpuDevice> real_gpus();

/// `count` devices that stand in for GPUs: console terminals (0 to 63), which jobs do not use, or
/// links to /dev/null in `directory` where the machine has fewer.
Result<std::vector<GpuDevice>> stand_in_gpus(int count, const std::string& model,
                                             const std::string& directory);

/// Slurm's gres type for a model: `k80` for `Tesla K80`, `rtx_3090` for `NVIDIA GeForce RTX 3090`.
/// Pure.
std::string gres_type(std::string_view model);

/// Extracts the model, e.g. `Tesla K80`, from a /proc/driver/nvidia/gpus/*/information file; empty
/// if absent. Pure.
std::string model_in(std::string_view information);
/// Extracts N of /dev/nvidiaN from the same text; -1 if absent. Pure.
int minor_in(std::string_view information);

int core_count();
std::uint64_t memory_mib();

/// How Slurm can confine jobs on this machine.
struct Cgroups {
    std::string plugin;   ///< CgroupPlugin: `cgroup/v1` or `cgroup/v2`; empty if unusable
    std::string obstacle; ///< why cgroups are unusable; else empty
};

/// Examines /sys/fs/cgroup: v1 requires writable freezer, memory and devices hierarchies (an empty
/// v2 hierarchy may exist as well, "hybrid"); v2 must be the only version, and requires systemd,
/// from which Slurm requests a delegated subtree. Both require root.
Cgroups cgroups_here();

/// True when systemd is the init system.
bool has_systemd();

/// Identifies the current boot; empty if the kernel does not report it.
std::string boot_id();

/// True when the host name resolves to 127.0.0.1, to which Slurm's NoInAddrAny would bind.
bool own_name_is_loopback();

/// Checks that Slurm can resolve 127.0.0.1: it calls getaddrinfo(3) with AI_ADDRCONFIG, which fails
/// on a machine that only has loopback addresses. `io` with a remedy.
Result<void> check_addresses();

/// Unused TCP ports of 127.0.0.1, outside the range for outgoing connections.
Result<std::vector<int>> free_ports(int count);
bool is_free(int port);
/// True when a process accepts connections on the port.
bool answers(int port);

} // namespace gpuq::embedded
