// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace gpuq::tune {

/// A value for each number: an index into its choices.
using Point = std::vector<std::size_t>;

/// For each goal how far it is missed (positive) or held (negative).
using Costs = std::vector<double>;

struct Space {
    std::vector<std::size_t> sizes; ///< how many choices each number has
    Point start;                    ///< the numbers as they are
};

/// A point that has been evaluated.
struct Evaluated {
    Point point;
    Costs costs;

    bool operator==(const Evaluated&) const = default;
};

/// Evaluates points, and returns their costs in the same order; nullopt for one that is not valid.
/// Fewer results than points: the search ends.
using Evaluate = std::function<std::vector<std::optional<Costs>>(const std::vector<Point>&)>;

/// How many points are evaluated together: the same on every machine, so that the result is, too.
inline constexpr std::size_t k_batch = 4;

/// How many of the numbers differ from their start.
std::size_t changes_in(const Space& space, const Point& point);

/// The sum that a search minimises: goals that are missed count a hundredfold, and each changed
/// number counts as much as one percent of a wait, and each step of it a tenth of that. `weights`:
/// of the goals; empty: all equal.
double total(const Space& space, const Evaluated& one, const std::vector<double>& weights = {});

/// A pattern search: it tries steps of every number up and down, and of pairs, and back to its
/// start, moves to the best improvement, and halves the steps if there is none. When steps of one
/// do not help, it starts again at another point, with other weights of the goals, so that
/// different compromises are found. Ends after `most` evaluations, or if nothing new is left to
/// try. The same arguments yield the same calls of `evaluate`. The first result is the start.
std::vector<Evaluated> search(const Space& space, std::size_t goals, std::uint64_t seed,
                              std::size_t most, const Evaluate& evaluate);

/// The points that no other one dominates, with differences below 5 % of a wait ignored: at most
/// `most`, the one with the lowest total first. The start is left out.
std::vector<Evaluated> front_of(const Space& space, const std::vector<Evaluated>& all,
                                std::size_t most);

} // namespace gpuq::tune
