// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "runs/insight/diagnosis.h"

#include <vector>

namespace gpuq::cli {

/// Runs a step without a GPU on a node and evaluates its output. The job is ended before this
/// returns, or by Slurm after a minute.
std::vector<Finding> query_node(Services& services);

} // namespace gpuq::cli
