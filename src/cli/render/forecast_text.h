// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/queues/forecast.h"

#include <string>

/// Text of forecasts. Pure.
namespace gpuq::cli {

/// `50 % by 14:20, 90 % by 17:05`; empty if it is unknown, or has passed.
std::string forecast_text(const StartForecast& forecast, Time now);

/// `it starts by 14:20 (in 20 min) with a probability of 50 %, by 17:05 (in 3 h) with 90 %`, or
/// `it starts at once`. The forecast must not be unknown.
std::string forecast_in_full(const StartForecast& forecast, Time now);

/// The basis of a forecast: the number of jobs that were observed to end.
std::string observed_text(double observed);

} // namespace gpuq::cli
