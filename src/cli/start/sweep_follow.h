// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "sweeps/records.h"

namespace gpuq::cli {

enum class SweepFollowing {
    owner,   ///< withdraws workers that still wait at the end; a second Ctrl-C stops the sweep
    observer ///< changes nothing
};

/// Prints a line about each try that ends, then the best ones. Returns once the sweep has ended, is
/// stopped or has no workers left, with 0 only if all tries have succeeded; or when a signal ends
/// following, as Ctrl-C does.
Result<int> follow_sweep(Invocation& invocation, Store& store, sweeps::Sweep sweep,
                         SweepFollowing following);

} // namespace gpuq::cli
