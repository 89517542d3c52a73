// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <map>
#include <optional>
#include <string>

/// When a pending job will probably start.
namespace gpuq {

/// The job starts by `p50` with a probability of one half, by `p90` with one of nine tenths.
struct StartForecast {
    std::optional<Time> p50;
    /// Unset although `p50` is set: jobs without a time limit are in the way, or as in `unknown`.
    std::optional<Time> p90;
    std::string unknown; ///< why a time is unset; empty if both are set
    bool operator==(const StartForecast&) const = default;
};

using StartForecasts = std::map<JobId, StartForecast>;

} // namespace gpuq
