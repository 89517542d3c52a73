// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/gpu.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::nvml {

/// A GPU that this process may ask about.
struct VisibleGpu {
    std::string uuid;
    std::string pci;               ///< sorts as the bus does
    std::optional<unsigned> minor; ///< N of /dev/nvidiaN
    std::vector<std::string> migs; ///< their UUIDs, when it is divided
};

/// The UUIDs of the GPUs, or parts of GPUs, that the job has; nothing for one that can not be told.
/// A GPU is taken when its UUID is named; when the node shows the job as many GPUs as it has, and
/// CUDA is told to use all that are shown (a site that confines devices); or when Slurm's numbers
/// mean the same GPUs both as /dev/nvidiaN and by their order on the bus, the two ways in which
/// releases of Slurm number them. Else it is nobody's: no telemetry is better than that of another
/// job.
std::vector<std::optional<std::string>> choose(const JobGpus& held,
                                               std::vector<VisibleGpu> visible);

} // namespace gpuq::nvml
