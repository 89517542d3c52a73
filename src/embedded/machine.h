// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/spec.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// This machine, as far as a cluster on it has to know it.
namespace gpuq::embedded {

/// GPUs of the NVIDIA driver: /dev/nvidia0 ... with the model it gives in /proc/driver/nvidia, or
/// nvidia-smi. Empty when there are none.
std::vector<GpuDevice> real_gpus();

/// `count` devices that stand for GPUs: terminals of the console (0 to 63), which jobs have no
/// use for; links to /dev/null in `folder` where the machine has fewer.
Result<std::vector<GpuDevice>> stand_in_gpus(int count, const std::string& model,
                                             const std::string& folder);

/// Slurm's type for a model's name: `Tesla K80` is `k80`, `NVIDIA GeForce RTX 3090` is
/// `rtx_3090`. Pure.
std::string gres_type(std::string_view model);

/// `Tesla K80`, from a /proc/driver/nvidia/gpus/*/information; empty when not told. Pure.
std::string model_in(std::string_view information);
/// The 0 of /dev/nvidia0, from the same text; -1 when not told. Pure.
int minor_in(std::string_view information);

int core_count();
std::uint64_t memory_mib();

/// How Slurm can confine jobs here.
struct Cgroups {
    std::string plugin;   ///< CgroupPlugin: `cgroup/v1` or `cgroup/v2`; empty when it can not
    std::string obstacle; ///< why not; empty when it can
};

/// Looks at /sys/fs/cgroup: v1 needs freezer, memory and devices hierarchies that can be written
/// (also beside an empty v2 one, "hybrid"); v2 needs to be alone, and a systemd, which Slurm asks
/// for a delegated part of the tree. Both need root.
Cgroups cgroups_here();

/// True when systemd runs this machine.
bool has_systemd();

/// Distinguishes boots; empty when the kernel does not say.
std::string boot_id();

/// True when this host's own name resolves to 127.0.0.1, to which Slurm's NoInAddrAny would bind.
bool own_name_is_loopback();

/// Whether Slurm, which asks getaddrinfo(3) with AI_ADDRCONFIG, finds 127.0.0.1 here: it does not
/// on a machine that has no address but those of the loopback interface. `io` says what helps.
Result<void> check_addresses();

/// Ports that nothing listens on, on 127.0.0.1, outside of the range of outgoing connections.
Result<std::vector<int>> free_ports(int count);
bool is_free(int port);
/// True when something accepts connections there.
bool answers(int port);

} // namespace gpuq::embedded
