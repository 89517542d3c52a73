// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/series.h"

#include <chrono>
#include <optional>

/// The pace of a training, from the times of its newest points.
namespace gpuq::telemetry {

/// Steps per second since the program last restarted. Nothing without two points with different
/// steps and times.
std::optional<double> steps_per_second(const Series& series);

/// The median of the newest intervals between two logged steps. Nothing for fewer than three
/// points.
std::optional<std::chrono::milliseconds> usual_interval(const Series& series);

/// True if a silence is too long to be a pause: more than 20 usual intervals, and more than 5
/// minutes, since event writers buffer their data for up to two minutes.
bool is_stall(std::chrono::milliseconds silence, std::chrono::milliseconds usual);

} // namespace gpuq::telemetry
