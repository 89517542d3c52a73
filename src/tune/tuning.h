// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tune/demand.h"
#include "tune/problem.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::tune {

/// The results of simulations, by policy_hash(): an interrupted search continues with them.
using Known = std::map<std::uint64_t, std::vector<Seconds>>;

/// Identifies a policy text in `Known`.
std::uint64_t policy_hash(std::string_view text);
/// Identifies everything else that the results depend on: jobs, users, weeks and goals.
std::uint64_t problem_hash(const Problem& problem, const Jobs& jobs);

/// A line of a journal, and its content; nullopt for any other text.
std::string record_of(std::uint64_t hash, const std::vector<Seconds>& waits);
std::optional<Known::value_type> parse_record(std::string_view line);

/// How far a search has come.
struct Progress {
    std::size_t simulations = 0; ///< including those known before
    std::size_t most = 0;
    std::optional<std::vector<Seconds>> best; ///< the waits of the best choice so far
};

/// The bounds of a search, and functions for the calling thread to call.
struct Effort {
    std::uint64_t seed = 1;
    std::size_t most = 400; ///< simulations
    /// Called for each new result.
    std::function<void(std::uint64_t hash, const std::vector<Seconds>& waits)> record;
    /// Called several times a second.
    std::function<void(const Progress& progress)> show;
    /// Called likewise: true ends the search after the simulations that run.
    std::function<bool()> is_over;
};

/// A changed policy that no other one beats in every goal.
struct Choice {
    std::string text;
    std::vector<Change> changes;
    std::vector<Seconds> searched; ///< waits by goal, in the weeks of the search
    std::vector<Seconds> unseen;   ///< in the others
    std::vector<int> held;         ///< by goal: in how many of those weeks, each by itself
    /// Goals that it misses in the unseen weeks, and holds less well than the policy as it is.
    std::vector<std::size_t> worse;
};

struct Tuning {
    std::vector<Choice> choices; ///< the best one first
    std::vector<int> held;       ///< as in Choice, with the policy as it is
    /// Whether the first choice is better than the policy as it is, in the weeks of the search.
    bool is_better = false;
    std::size_t simulations = 0;
    bool interrupted = false; ///< by is_over()

    /// The first choice, if it is better and in the unseen weeks no worse.
    const Choice* recommended() const
    {
        return is_better && choices.front().worse.empty() ? &choices.front() : nullptr;
    }
};

/// Searches with all processors. The result depends on the problem, the seed and the number of
/// simulations only.
Result<Tuning> tune(const Problem& problem, const Known& known, const Effort& effort);

} // namespace gpuq::tune
