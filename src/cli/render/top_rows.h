// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/insight/overview.h"
#include "runs/status.h"
#include "tui/base/picture.h"

#include <vector>

namespace gpuq::cli {

/// The rows of runs in `gpuq top`, in the same order; `sweep_key` as recorded, also of a sweep that
/// is not listed. Pure.
std::vector<tui::RunRow> top_rows(const std::vector<RunStatus>& runs, const Overview& overview,
                                  Time now);

/// The job of a run as Slurm has described it; null if it is not known.
const OwnJob* job_of(const RunStatus& status, const Overview& overview);

} // namespace gpuq::cli
