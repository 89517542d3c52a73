// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "runs/diagnosis.h"

#include <vector>

namespace gpuq::cli {

enum class AskNodes { no, yes };

/// Looks at everything that gpuq needs here. Each check has its own process and a time limit:
/// neither a Slurm that hangs nor a dead file server stops the others. With AskNodes::yes a job
/// without a GPU, a minute long at most, looks at the state folder from a node.
std::vector<Finding> examine(Doors& doors, AskNodes nodes);

} // namespace gpuq::cli
