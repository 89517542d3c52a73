// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/queries/sweep_query.h"

#include <functional>
#include <string>

namespace gpuq::cli {

/// Writes a page (cli/pages, which this module may not use).
using SweepPage = std::function<std::string(const SweepStatus&, Time now)>;

/// `gpuq show SWEEP`: its tries and their results, with `--html` also as a page, with `--metric` by
/// another metric; `gpuq show SWEEP/N`: everything about one of them.
Result<int> show_sweep(Invocation& invocation, Store& store, SweepTarget target,
                       const SweepPage& page);

/// `gpuq logs [-f] SWEEP/N`. The exit status is 0, with -f that of the try.
Result<int> try_logs(Invocation& invocation, Store& store, const SweepTarget& target);

/// `gpuq stop SWEEP`: no further tries, and the running ones end; `gpuq stop SWEEP/N`: one of them.
/// False: it had ended before.
Result<bool> stop_sweep(Invocation& invocation, Store& store, SweepTarget target);

} // namespace gpuq::cli
