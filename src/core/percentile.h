// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace gpuq {

/// The smallest of the ascending values that at least `percent` percent of them do not exceed.
/// There must be one.
template <typename Value>
Value percentile(const std::vector<Value>& ascending, std::size_t percent)
{
    const std::size_t rank = (ascending.size() * percent + 99) / 100;
    return ascending[std::max<std::size_t>(rank, 1) - 1];
}

/// The same; unknown if there are too few values for at least one to be above it, which takes 20
/// for the 95th percentile and one for the 100th.
template <typename Value>
std::optional<Value> known_percentile(const std::vector<Value>& ascending, std::size_t percent)
{
    const std::size_t enough = percent == 100 ? 1 : 100 / (100 - percent);
    return ascending.size() < enough ? std::nullopt : std::optional(percentile(ascending, percent));
}

} // namespace gpuq
