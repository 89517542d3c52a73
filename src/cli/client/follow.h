// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/client/session.h"

#include <optional>

namespace gpuq::cli {

/// Follows a run from the link in `options` to its end, across all links of a chain: a Session for
/// each link, and a wait between two. Returns gpuq's exit status.
Result<int> follow_run(Services& services, Signals& signals, const Run& run, JobId job,
                       SessionOptions options, std::optional<StepProcess> first);

} // namespace gpuq::cli
