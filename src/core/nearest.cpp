// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/nearest.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {
namespace {

constexpr std::size_t k_longest = 64; // longer input is not treated as a typo

/// Edit distance with swaps of neighbours (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b)
{
    std::vector<std::vector<std::size_t>> cost(a.size() + 1,
                                               std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            cost[i][j] =
                std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
            }
        }
    }
    return cost[a.size()][b.size()];
}

constexpr std::size_t k_shortest_beginning = 2;

std::optional<std::string> only_one_beginning_with(std::string_view word,
                                                   const std::vector<std::string>& candidates)
{
    std::optional<std::string> found;
    for (const std::string& candidate : candidates) {
        if (word.size() < k_shortest_beginning || !candidate.starts_with(word)) {
            continue;
        }
        if (found) {
            return std::nullopt;
        }
        found = candidate;
    }
    return found;
}

} // namespace

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates)
{
    if (word.size() > k_longest) {
        return std::nullopt;
    }
    std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
    std::optional<std::string> found;
    for (const std::string& candidate : candidates) {
        const std::size_t far = distance(word, candidate);
        if (far < best && far < candidate.size()) {
            best = far;
            found = candidate;
        }
    }
    return found ? found : only_one_beginning_with(word, candidates);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates)
{
    const auto found = nearest(word, candidates);
    return found ? fmt::format(" (did you mean '{}'?)", *found) : "";
}

} // namespace gpuq
