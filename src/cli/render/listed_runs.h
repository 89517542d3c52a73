// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "runs/status.h"

#include <vector>

namespace gpuq::cli {

/// The runs to list, newest first: active ones and those that ended within a day; with `want_all`
/// every run on disk.
Result<std::vector<RunKey>> listed_runs(Store& store, bool want_all, Time now);

/// True for the remains of a run that Slurm refused, which are not listed.
bool is_nothing(const RunStatus& status);

} // namespace gpuq::cli
