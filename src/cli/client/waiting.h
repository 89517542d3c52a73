// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/signals.h"
#include "cli/base/verb.h"
#include "core/run.h"

#include <chrono>
#include <optional>

namespace gpuq::cli {

struct WaitingOptions {
    bool terminal = false;
    bool quiet = false;
    bool visitor = false; ///< did not request the run: only Ctrl-C on a terminal withdraws it
    std::optional<std::chrono::seconds> max_wait;
    LinkNumber link; ///< whose job waits; for a later one Ctrl-C on a terminal only detaches
    /// The start after a shorter wait is no notice (cli/base/notices.h).
    std::chrono::milliseconds notice_after{10'000};
};

/// The end of a wait: the run has started (or ended), or gpuq should exit with a status.
struct Waited {
    std::optional<int> leave;
};

/// Waits until the queued job of `run` starts. Shows its reason and expected start: on one line of
/// a terminal; elsewhere a line per change and one a minute. Rings the bell and gives a
/// notice at the start of a run that has waited more than ten seconds. Polls the journal on disk
/// twice a second and Slurm every ten seconds.
///
/// Ctrl-C on a terminal withdraws the request, and so does reaching `max_wait`. Other signals leave
/// it in the queue if there is a terminal, for a visitor, or if the signal is HUP; otherwise they
/// withdraw it.
Result<Waited> wait_for_start(Services& services, Signals& signals, const Run& run, JobId job,
                              const WaitingOptions& options);

} // namespace gpuq::cli
