// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// The candidate that `word` was probably meant to be: fewest letters inserted, dropped, changed
/// or swapped with a neighbour, and at most a third of the word; else the one that begins with
/// it. Nothing when none is near.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// ` (did you mean 'NAME'?)`, or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

} // namespace gpuq
