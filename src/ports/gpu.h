// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"
#include "telemetry/sample_file.h"

#include <memory>
#include <string>
#include <vector>

namespace gpuq {

/// The GPUs of a job on this node, according to its environment.
struct JobGpus {
    std::size_t count = 0;
    std::string visible; ///< CUDA_VISIBLE_DEVICES
    std::string ids;     ///< SLURM_JOB_GPUS or SLURM_STEP_GPUS
};

struct GpuReading {
    GpuName name;
    GpuSample sample;
};

/// The GPUs of one job on this node.
class Gpus {
public:
    virtual ~Gpus() = default;

    /// One entry per GPU of the job, always in the same order; a value that cannot be read has a
    /// reason instead. Can block as long as the driver does, even forever: call it on a thread that
    /// no other thread waits for.
    virtual std::vector<GpuReading> measure() = 0;
};

} // namespace gpuq
