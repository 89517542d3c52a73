// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "policy/policy.h"
#include "sim/machine.h"

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::tune {

using sim::Seconds;

/// The wait of a run that never starts.
inline constexpr Seconds k_never = Seconds::max();

/// A bound on the waits of some runs: a target, or how much longer than now they may become.
struct Goal {
    std::string group; ///< a queue, or `short` or `long` (sim::Targets)
    int percent = 0;   ///< 95: of the waits for the first start; 0: their mean, over all links
    std::optional<Seconds> limit;       ///< a target
    std::optional<int> percent_more{};  ///< or relative to the wait under the policy as it is
    std::optional<Seconds> time_more{}; ///< likewise

    bool is_target() const { return limit.has_value(); }
    bool operator==(const Goal&) const = default;
};

/// `short: p95<=5m`, or several: `short: p50<=1m, max<=2h`; also `mean<=10m`. `usage`.
Result<std::vector<Goal>> parse_targets(std::string_view text);

/// `long: +20%`, `long: +30m`. `usage`.
Result<Goal> parse_keep(std::string_view text);

/// The wait targets in a policy (`wait`).
std::vector<Goal> targets_of(const policy::Policy& policy);

/// The longest wait that holds the goal, if it is `now` under the policy as it is.
Seconds limit_of(const Goal& goal, Seconds now);

/// `p95`, `longest`, `mean`.
std::string statistic_of(const Goal& goal);
/// `short: p95<=5m`: as it can be parsed.
std::string to_text(const Goal& goal);

/// How far a wait is from its limit: the logarithm of their ratio, each plus a minute, so that a
/// few seconds count little. Positive: the goal is missed. A target that is held counts a quarter
/// of that, and no further than by half: its margin is worth less than the waits of other runs.
double cost_of(const Goal& goal, Seconds wait, Seconds limit);

} // namespace gpuq::tune
