// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "sweeps/records.h"

namespace gpuq::cli {

/// Prints a line about each try that ends, then the best ones. Returns once the sweep has ended, is
/// stopped or has no workers left, with 0 only if all tries have succeeded; or when a signal ends
/// following: Ctrl-C detaches, a second one stops the sweep.
Result<int> follow_sweep(Invocation& invocation, Store& store, sweeps::Sweep sweep);

} // namespace gpuq::cli
