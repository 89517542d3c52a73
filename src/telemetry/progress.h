// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace gpuq::telemetry {

/// How far a training has come.
struct Progress {
    std::string unit; ///< `epoch`, `step` or `iteration`
    std::uint64_t done = 0;
    std::optional<std::uint64_t> total;
    bool operator==(const Progress&) const = default;
};

/// How long the rest takes at the pace of what was done `between` the two places, of one unit.
/// Nothing without a total, or while nothing was done in between.
std::optional<std::chrono::seconds> time_left(const Progress& first, const Progress& last,
                                              std::chrono::seconds between);

} // namespace gpuq::telemetry
