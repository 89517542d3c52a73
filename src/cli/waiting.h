// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/signals.h"
#include "cli/verb.h"
#include "core/run.h"

#include <chrono>
#include <optional>

namespace gpuq::cli {

struct WaitingOptions {
    bool terminal = false;
    bool quiet = false;
    bool visitor = false; ///< did not ask for the run: no signal but Ctrl-C of a terminal withdraws
    std::optional<std::chrono::seconds> max_wait;
    LinkNumber link; ///< whose job waits. Of a later one Ctrl-C of a terminal leaves the run alone
};

/// What ended the wait: the run runs (or has run), or gpuq is to leave with a status.
struct Waited {
    std::optional<int> leave;
};

/// Waits until the queued job of `run` starts: its reason and expected start on one line of a
/// terminal, a line per change and one a minute elsewhere, the bell after ten seconds. The journal
/// on disk is looked at twice a second, Slurm is asked every ten.
///
/// Ctrl-C withdraws the request; TERM and HUP leave it in the queue on a terminal and withdraw it
/// without one; so does `max_wait` when it has passed.
Result<Waited> wait_for_start(Doors& doors, Signals& signals, const Run& run, JobId job,
                              const WaitingOptions& options);

} // namespace gpuq::cli
