// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/decide.h"
#include "policy/policy.h"

#include <string>
#include <vector>

namespace gpuq::policy {

/// The result of one of the policy's own tests.
struct CaseResult {
    const Case* test = nullptr; ///< in the policy
    bool passed = false;
    std::string got; ///< as text: `queue calibration`, `refused: ...`
};

/// A rule, with the number of tests that exercise it: those it keeps out of a queue or, for the
/// queue itself, those it accepts.
struct RuleCount {
    std::string rule; ///< as text
    int line = 0;
    int tests = 0;
};

struct CaseReport {
    std::vector<CaseResult> results; ///< in the order of the file
    std::vector<RuleCount> rules;    ///< all rules, in the order of the file
};

/// The policy at the time of a test; without one, the policy itself: outside of its calendar.
Policy policy_of(const Case& test, const Policy& policy);

/// The submission that a test in the policy file describes.
Submission submission_of(const Case& test);

/// Runs all tests of a policy through `decide`, each at its time. `rules` are those of the policy
/// with its calendar.
CaseReport run_cases(const Rules& rules);

} // namespace gpuq::policy
