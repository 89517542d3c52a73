// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/render/free_table.h"
#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/queues/run_times.h"

#include <span>

/// When a run would start that is not submitted: `gpuq free --for`.
namespace gpuq::cli {

/// The options of `gpuq run` that determine the size of a run.
std::span<const Option> size_option_table();

/// The forecast for a run with these options, in the queue that `gpuq run` would choose. Makes no
/// query. Errors as with `gpuq run`: `usage` for an option, `denied` and `missing` for queues.
Result<RequestForecast> forecast_run(Services& services, const Options& options,
                                     const Inventory& inventory, const AllJobs& all,
                                     const RunTimes& times, Time now);

} // namespace gpuq::cli
