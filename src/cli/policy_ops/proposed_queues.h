// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// The partitions with GPUs as pools and queues of a policy (gpuq-policy(5)), as lines of YAML; for
/// each partition, the fields that a queue can not express. Empty if no partition has GPUs. Pure.
std::vector<std::string> proposed_queues(const std::vector<SlurmObject>& objects,
                                         const SlurmState& actual);

} // namespace gpuq::cli
