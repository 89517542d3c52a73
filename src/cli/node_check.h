// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "runs/diagnosis.h"

#include <vector>

namespace gpuq::cli {

/// Starts a step without a GPU on some node and judges what it sees there. The job is ended before
/// this returns, and by Slurm after a minute in any case.
std::vector<Finding> ask_a_node(Doors& doors);

} // namespace gpuq::cli
