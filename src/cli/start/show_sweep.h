// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/queries/sweep_query.h"

namespace gpuq::cli {

/// `gpuq show SWEEP`: its tries and their results; `gpuq show SWEEP/N`: everything about one of
/// them.
Result<int> show_sweep(Invocation& invocation, Store& store, SweepTarget target);

/// `gpuq logs [-f] SWEEP/N`. The exit status is 0, with -f that of the try.
Result<int> try_logs(Invocation& invocation, Store& store, const SweepTarget& target);

/// `gpuq stop SWEEP`: no further tries, and the running ones end; `gpuq stop SWEEP/N`: one of them.
Result<int> stop_sweep(Invocation& invocation, Store& store, SweepTarget target);

} // namespace gpuq::cli
