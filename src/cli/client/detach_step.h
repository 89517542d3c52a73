// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/signals.h"
#include "cli/base/verb.h"
#include "core/run.h"
#include "ports/step_process.h"

#include <chrono>
#include <optional>

namespace gpuq::cli {

/// How long Slurm may take to start a step: a node's prolog may be slow, and an srun may hang.
struct StepPatience {
    std::chrono::milliseconds notice = std::chrono::seconds{10}; ///< then a message is printed
    std::chrono::milliseconds most = std::chrono::minutes{5};
};

/// Leaves a run that was started at once to itself: as soon as the supervisor has sent its
/// Hello, starts the guard step and detaches `first`, its srun (src/README.md, 3). From then on the
/// run needs no process on this host, like one that was queued. Its output is in its log only.
///
/// A signal ends the wait: the run then continues with its srun; returns gpuq's exit status.
/// `internal`: Slurm has not started the supervisor, with srun's message or after the patience;
/// `lost`: the srun was killed. In both cases the run has ended.
Result<std::optional<int>> detach_step(Services& services, Signals& signals, const Run& run,
                                       JobId job, const StepProcess& first, bool quiet,
                                       const StepPatience& patience = {});

} // namespace gpuq::cli
