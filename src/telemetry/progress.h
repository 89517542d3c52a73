// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace gpuq::telemetry {

/// The progress of a training.
struct Progress {
    std::string unit; ///< `epoch`, `step` or `iteration`
    std::uint64_t done = 0;
    std::optional<std::uint64_t> total;
    bool operator==(const Progress&) const = default;
};

/// The remaining time at the pace between `first` and `last`, which are `between` apart and have
/// the same unit. Nothing without a total or without progress in between.
std::optional<std::chrono::seconds> time_left(const Progress& first, const Progress& last,
                                              std::chrono::seconds between);

} // namespace gpuq::telemetry
