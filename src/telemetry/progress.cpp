// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/progress.h"

#include <cmath>

namespace gpuq::telemetry {

std::optional<std::chrono::seconds> time_left(const Progress& first, const Progress& last,
                                              std::chrono::seconds between)
{
    constexpr double k_longest = 10.0 * 365 * 86400; // longer times are not a meaningful forecast
    if (!last.total || first.unit != last.unit || last.done <= first.done ||
        *last.total < last.done || between.count() <= 0) {
        return std::nullopt;
    }
    const double each =
        static_cast<double>(between.count()) / static_cast<double>(last.done - first.done);
    const double left = each * static_cast<double>(*last.total - last.done);
    return left > k_longest ? std::nullopt
                            : std::optional(std::chrono::seconds(std::llround(left)));
}

} // namespace gpuq::telemetry
