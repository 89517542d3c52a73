// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "policy/policy.h"
#include "sim/scenario.h"
#include "tune/goal.h"
#include "tune/measure.h"
#include "tune/numbers.h"
#include "tune/weeks.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::tune {

/// The policy file to be tuned, which is valid.
struct PolicyFile {
    std::string name;
    std::string text;
    policy::Policy policy;
};

/// The workload that a search uses.
struct Jobs {
    std::string name;
    sim::Trace trace;
    sim::UserModel user_model;
};

/// The waits under the policy as it is, in one period, and the limits that follow from them.
struct Baseline {
    std::vector<Seconds> waits;  ///< by goal
    std::vector<Seconds> limits; ///< by goal
    std::size_t unserved = 0;    ///< runs; a changed policy may not leave more

    bool operator==(const Baseline&) const = default;
};

/// All that is needed to judge a changed policy. Read only, by several threads.
struct Problem {
    PolicyFile file;
    sim::UserModel user_model;
    Weeks weeks;
    std::vector<Goal> goals;
    std::vector<Group> groups;
    std::vector<std::size_t> group_of; ///< for each goal, its index in groups
    Numbers numbers;
    std::vector<bool> passes; ///< for each of the file's own tests
    Baseline searched;        ///< in the weeks of the search
    Baseline unseen;          ///< in the other weeks
};

/// The targets and the bounds on other queues. Without targets those of the policy; without bounds
/// +20 % for each queue, or for `short` or `long`, that has no target. `usage` for unknown groups,
/// and if there is no target at all.
Result<std::vector<Goal>> goals_of(const policy::Policy& policy, const std::vector<Group>& groups,
                                   std::vector<Goal> targets, std::vector<Goal> keeps);

/// `usage` for jobs, goals or numbers that are not valid, and if no number can be tuned.
Result<Problem> problem_of(PolicyFile file, const Jobs& jobs, std::vector<Goal> targets,
                           std::vector<Goal> keeps, const Selection& selection);

/// A changed policy.
struct Trial {
    std::string text;
    std::vector<Change> changes;
};

/// The file with the numbers of a point; nullopt if the policy would not be valid, or would fail
/// one of the file's own tests that holds now.
std::optional<Trial> trial_of(const Problem& problem, const Point& point);

/// The waits of each goal in a period of the problem under a policy text that trial_of made; all
/// of them k_never if it leaves more runs unserved than the policy as it is.
Result<std::vector<Seconds>> waits_under(const Problem& problem, const std::string& text,
                                         const Period& period, const Baseline& baseline);

/// As for search().
Costs costs_of(const Problem& problem, const std::vector<Seconds>& waits, const Baseline& baseline);

/// Whether every goal is held.
bool holds(const Baseline& baseline, const std::vector<Seconds>& waits);

} // namespace gpuq::tune
