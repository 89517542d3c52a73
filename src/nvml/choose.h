// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/gpu.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::nvml {

/// A GPU that this process may query.
struct VisibleGpu {
    std::string uuid;
    std::string pci;               ///< sorts in bus order
    std::optional<unsigned> minor; ///< N of /dev/nvidiaN
    std::vector<std::string> migs; ///< UUIDs of its MIG devices, if it is divided
};

/// Returns the UUIDs of the job's GPUs or MIG devices; nullopt for each one that cannot be
/// identified. A GPU counts as the job's in three cases:
/// - its UUID is in CUDA_VISIBLE_DEVICES;
/// - the node shows as many GPUs as the job has, as at a site that confines devices, and
///   CUDA_VISIBLE_DEVICES selects all of them (or neither it nor Slurm lists numbers);
/// - Slurm's numbers mean the same GPUs as N of /dev/nvidiaN and as positions on the bus, the two
///   numberings that Slurm releases use.
/// Otherwise the GPUs stay unidentified: no telemetry is better than that of another job.
std::vector<std::optional<std::string>> choose(const JobGpus& held,
                                               std::vector<VisibleGpu> visible);

} // namespace gpuq::nvml
