// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/step_process.h"

#include <string>

namespace gpuq::cli {

/// The outcome of a tunnel.
struct TunnelEnd {
    bool connected = false; ///< the other end has sent something
    std::string errors;     ///< the last errors of the step and its srun
};

/// Carries bytes between this process's `input` and `output` and a step: unchanged to the step, in
/// frames (wire/frame.h) from it, until either side ends. Takes the descriptors of `step`. Output
/// of the step is read from Slurm even while `output` is blocked: unread, it would keep the job
/// from ending.
TunnelEnd carry(const StepProcess& step, int input, int output);

} // namespace gpuq::cli
