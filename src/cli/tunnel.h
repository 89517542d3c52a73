// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <string>

namespace gpuq::cli {

/// What became of a tunnel.
struct TunnelEnd {
    bool connected = false; ///< the far end has said something
    std::string errors;     ///< the last words of the step and its srun
};

/// Carries bytes between this process's `input` and `output` and a step: to the step as they are,
/// from it in frames (wire/frame.h), until either side has no more. Takes the descriptors of
/// `step`. What the step says is always taken from Slurm, also while `output` is stuck: left there
/// it would keep the job from ending.
TunnelEnd carry(const StepProcess& step, int input, int output);

} // namespace gpuq::cli
