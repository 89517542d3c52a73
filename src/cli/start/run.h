// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/start/run_options.h"
#include "core/run.h"
#include "runs/plan.h"

#include <optional>

namespace gpuq::cli {

/// The common part of `gpuq run`, `gpuq again` and `gpuq shell`, from the choice of a queue to the
/// exit status.
Result<int> run_with(Invocation& invocation, RunOptions options, bool shell);

/// The plan for a run, without submitting it. Queries Slurm for the queues, unless they are cached.
Result<Plan> plan_run(Invocation& invocation, RunOptions options);

/// A run started for use by `gpuq` itself.
struct StartedRun {
    int status = 0; ///< if not 0, gpuq exits with it and has printed the reason
    std::optional<Run> run;
    JobId job;
};
/// As `gpuq run --detach`, without its JSON document. With `options.awaited` it may be started at
/// once, and its srun is detached when this returns.
Result<StartedRun> start_detached(Invocation& invocation, RunOptions options);

} // namespace gpuq::cli
