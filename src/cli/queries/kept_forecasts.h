// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/run_table.h"

#include <vector>

namespace gpuq {
class Store;
}

namespace gpuq::cli {

/// The forecasts of the waiting runs and plain jobs in `runs`, as made with the last query of all
/// jobs by any command of the user. Reads the cached overview, no RPC.
RunForecasts kept_forecasts(Store& store, const std::vector<RunStatus>& runs);

} // namespace gpuq::cli
