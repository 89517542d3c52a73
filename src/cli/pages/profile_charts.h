// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/profile_text.h"
#include "report/chart.h"

#include <chrono>
#include <limits>
#include <string>
#include <vector>

namespace gpuq::cli {

/// The value of a point where a curve is interrupted.
constexpr double k_gap = std::numeric_limits<double>::quiet_NaN();

constexpr double seconds(std::chrono::microseconds time)
{
    return static_cast<double>(time.count()) / 1e6;
}

/// A chart without curves from the beginning to the end of the profile. Marks the beginning of each
/// link, if there are several, and the checkpoints.
report::Chart chart_over_time(const telemetry::Profile& profile, std::string id, std::string title);

/// The chart in HTML, with its title, a legend of `names` and a caption, if there is one.
std::string figure(const report::Chart& chart, const std::vector<std::string>& names,
                   const std::string& caption);

/// The losses that the program has printed or logged, by time if all their points have one, else by
/// step. Empty if there is none.
std::string loss_figure(const WholeProfile& whole);

} // namespace gpuq::cli
