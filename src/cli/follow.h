// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/session.h"

#include <optional>

namespace gpuq::cli {

/// A run from the link in `options` to its end, over all the links of a chain: what a Session does
/// for one link, and the waiting between two. Gives what gpuq exits with.
Result<int> follow_run(Doors& doors, Signals& signals, const Run& run, JobId job,
                       SessionOptions options, std::optional<StepProcess> first);

} // namespace gpuq::cli
