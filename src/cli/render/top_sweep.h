// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/sweep_table.h"
#include "core/ids.h"
#include "runs/insight/progress.h"
#include "tui/base/picture.h"

#include <cstddef>
#include <memory>
#include <vector>

/// Sweeps in `gpuq top`. Pure.
namespace gpuq::cli {

/// A sweep at one time. Its large parts are shared, and never change.
struct TopSweep {
    std::shared_ptr<const SweepStatus> status; ///< without its workers and its state
    std::shared_ptr<const tui::Sweep> shown;   ///< its tries
    SweepStatus::State state = SweepStatus::State::waiting;
    std::size_t workers = 0; ///< that are running
};

/// The tries of a sweep.
tui::Sweep top_tries(const SweepStatus& status);

/// Its line in the list of runs.
tui::RunRow top_sweep_row(const TopSweep& sweep, Time now);

/// The curve of a try's metric and its last step, from its output.
tui::Detail top_try_detail(const SweepStatus& status, std::size_t number,
                           const LinkProgress& output);

/// Tries side by side: `numbers` and their curves, in the same order.
tui::Comparison top_tries_comparison(const SweepStatus& status,
                                     const std::vector<std::size_t>& numbers,
                                     const std::vector<telemetry::Curves>& curves, Time now);

} // namespace gpuq::cli
