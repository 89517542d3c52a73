// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/render/sweep_table.h"
#include "sweeps/board.h"
#include "sweeps/records.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace gpuq::cli {

enum class SweepFollowing {
    owner,   ///< withdraws workers that still wait at the end; a second Ctrl-C stops the sweep
    observer ///< changes nothing
};

/// Prints a line about each try that ends, then the best ones. Ends that are in `before` are not
/// news; nor, for an observer, are those before the call. Returns once the sweep has ended, is
/// stopped or has no workers left, with 0 only if all tries have succeeded; or when a signal ends
/// following, as Ctrl-C does.
Result<int> follow_sweep(Invocation& invocation, Store& store, sweeps::Sweep sweep,
                         SweepFollowing following, const std::vector<sweeps::Try>& before = {});

/// The exit status for a try that no worker will take: 119, or 123 if the sweep is stopped or has
/// used its GPU time. Nothing: it runs, waits or has ended.
std::optional<int> outcome_without_worker(const SweepStatus& status, std::size_t number);

/// Waits until a try has ended and returns its exit status, or that of a try that no worker will
/// take. Changes nothing.
Result<int> wait_for_try(Invocation& invocation, Store& store, const sweeps::Sweep& sweep,
                         std::size_t number);

} // namespace gpuq::cli
