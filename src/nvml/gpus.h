// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/gpu.h"

namespace gpuq::nvml {

/// The GPUs of a job, queried through NVIDIA's library. Nothing is loaded or queried before the
/// first call of `measure()`.
std::unique_ptr<Gpus> gpus(const JobGpus& held);

} // namespace gpuq::nvml
