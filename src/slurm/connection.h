// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <optional>
#include <string>

namespace gpuq::slurm {

/// Loads libslurm's configuration, once per process. `usage` when there is none, or when another
/// one was loaded before.
Result<void> initialise(const std::optional<std::string>& path);

/// From now on this process is a copy that must not run its parent's exit handlers.
void leave_without_handlers();

/// ClusterName of the configuration.
std::string cluster_name();

/// False with AccountingStorageType=accounting_storage/none.
bool has_accounting();

/// False with TaskPlugin=task/none, where srun warns of a --cpu-bind.
bool has_cpu_binding();

} // namespace gpuq::slurm
