// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/run.h"
#include "ports/cluster.h"
#include "ports/job.h"
#include "runs/insight/overview.h"

#include <string>
#include <vector>

/// Parts of the output of `gpuq run --dry-run`.
namespace gpuq::cli {

/// Whether GPUs for a run are free, else when it will probably start, as of an overview that
/// another process of the user has recently queried: `starts at once: 2 k80 were free 8 s ago`.
/// Empty without a recent overview, and for a run without GPUs or with shares of them. Pure.
std::string start_text(const JobSpec& spec, const Overview& overview, Time now);
/// The same, from the overview that gpuq top keeps on disk; makes no query.
std::string expected_start(Services& services, Cluster& cluster, const JobSpec& spec);

/// Without the values of these variables: they may be secret, and were not typed on this screen.
Request without_values(Request request, const std::vector<std::string>& names);

} // namespace gpuq::cli
