// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "ports/nodes.h"

#include <string>

namespace gpuq {

/// The resources that a waiting job lacks although GPUs for it are free on a node: `cores`,
/// `memory` or `cores and memory`. Empty if it lacks GPUs, or if that is not known. Pure.
std::string lacking_beside_gpus(const Job& job, const AllJobs& all, const Inventory& inventory,
                                Time now);

} // namespace gpuq
