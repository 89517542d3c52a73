// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"
#include "telemetry/sample_file.h"

#include <memory>
#include <string>
#include <vector>

namespace gpuq {

/// What the environment of a job says of the GPUs that it has on this node.
struct JobGpus {
    std::size_t count = 0;
    std::string visible; ///< CUDA_VISIBLE_DEVICES
    std::string ids;     ///< SLURM_JOB_GPUS or SLURM_STEP_GPUS
};

struct GpuLook {
    GpuName name;
    GpuSample sample;
};

/// The GPUs of one job on this node.
class Gpus {
public:
    virtual ~Gpus() = default;

    /// One for each GPU that the job has, always in the same order; what can not be told says why.
    /// May hang for as long as the driver does, and never return: to be called on a thread that
    /// nobody waits for.
    virtual std::vector<GpuLook> look() = 0;
};

} // namespace gpuq
