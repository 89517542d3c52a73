// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// The candidate that `word` is most likely a misspelling of: smallest edit distance (insertions,
/// deletions, substitutions, swaps of neighbours), at most a third of the length of `word`;
/// otherwise the candidate that begins with `word`. nullopt when none is close.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// ` (did you mean 'NAME'?)`, or an empty string.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

} // namespace gpuq
