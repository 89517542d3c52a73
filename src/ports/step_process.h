// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>

namespace gpuq {

/// The client process (srun) of a step, which carries its standard streams. `input` may be -1 (the
/// step reads /dev/null). The owner must close the descriptors.
struct StepProcess {
    int pid = -1;
    std::uint64_t born = 0; ///< start time in kernel clock ticks: detects a reused pid
    int input = -1;
    int output = -1;
    int error = -1; ///< srun's own messages and the task's stderr
};

} // namespace gpuq
