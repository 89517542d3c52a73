// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuq::telemetry {

/// The direction in which a metric improves.
enum class Better : std::uint8_t { unknown, lower, higher };

/// Derives it from the name of the metric, ignoring case: `lower` for losses, errors and
/// perplexities, `higher` for accuracies, scores and rewards.
Better better_of(std::string_view tag);

} // namespace gpuq::telemetry
