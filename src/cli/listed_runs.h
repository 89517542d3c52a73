// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "runs/status.h"

#include <vector>

namespace gpuq::cli {

/// The runs that are worth a row, newest first: active ones and those that ended within a day; or
/// every run that is on disk.
Result<std::vector<RunKey>> listed_runs(Store& store, bool want_all, Time now);

/// What is left of a run that Slurm refused is not one.
bool is_nothing(const RunStatus& status);

} // namespace gpuq::cli
