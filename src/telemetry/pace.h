// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/series.h"

#include <chrono>
#include <optional>

/// How fast a training goes, out of the times of its newest points.
namespace gpuq::telemetry {

/// Steps in a second, since the program last began again. Nothing without two points of different
/// steps and times.
std::optional<double> steps_per_second(const Series& series);

/// From one step that was told to the next, the median of the newest. Nothing of fewer than three.
std::optional<std::chrono::milliseconds> usual_interval(const Series& series);

/// A silence that is no pause: of 20 usual intervals, and of 5 minutes, since writers hold back
/// what they write for two.
bool is_stall(std::chrono::milliseconds silence, std::chrono::milliseconds usual);

} // namespace gpuq::telemetry
