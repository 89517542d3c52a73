// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "sweeps/board.h"
#include "sweeps/records.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace gpuq::sweeps {

/// The time that the waiting and running tries still need, if each takes as long as the successful
/// ones on average.
struct Forecast {
    /// The sum over all GPUs, within the sweep's limit; unset: no try has succeeded yet.
    std::optional<std::chrono::microseconds> gpu_time;
    /// When the last try ends; unset: that, or no worker is running, or the limit comes first.
    std::optional<Time> finish;
};

/// The mean time of the successful tries; that of the running ones until now, if it is longer or
/// none has succeeded. Pure.
std::chrono::microseconds typical_time(const std::vector<Try>& tries, Time now);

/// `workers`: those that are running. Pure.
Forecast forecast_of(const std::vector<Try>& tries, const Sweep& sweep, std::size_t workers,
                     Time now);

} // namespace gpuq::sweeps
