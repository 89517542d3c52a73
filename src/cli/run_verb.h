// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/run_options.h"
#include "cli/verb.h"
#include "core/run.h"

#include <optional>

namespace gpuq::cli {

/// `gpuq run`: a program on a GPU now, its output here, its exit status ours.
extern const Verb k_run_verb;

/// What `gpuq run` and `gpuq shell` do with their options, from the queues to the exit status.
Result<int> run_with(Invocation& invocation, RunOptions options, bool shell);

/// A run that was started for what `gpuq` itself does with it.
struct StartedRun {
    int status = 0; ///< not 0: gpuq exits with it, and has said why
    std::optional<Run> run;
    JobId job;
};
/// As `gpuq run --detach`, without its JSON document.
Result<StartedRun> start_detached(Invocation& invocation, RunOptions options);

} // namespace gpuq::cli
