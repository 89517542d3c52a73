// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/gpu.h"

namespace gpuq::nvml {

/// The GPUs of a job by NVIDIA's library. Nothing is loaded or asked before the first look.
std::unique_ptr<Gpus> gpus(const JobGpus& held);

} // namespace gpuq::nvml
