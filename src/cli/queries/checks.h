// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "runs/insight/diagnosis.h"

#include <vector>

namespace gpuq::cli {

enum class NodeQueries { no, yes };

/// Checks everything that gpuq needs on this host. Each check runs in its own process with a time
/// limit, so a Slurm that hangs or a dead file server does not block the others. With
/// NodeQueries::yes a job without a GPU, at most a minute long, checks the state directory from a
/// node.
std::vector<Finding> examine(Services& services, NodeQueries nodes);

} // namespace gpuq::cli
