// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/decide.h"
#include "policy/policy.h"

#include <string>
#include <vector>

namespace gpuq::policy {

/// What became of one of the file's own tests.
struct CaseResult {
    const Case* test = nullptr; ///< of the policy
    bool passed = false;
    std::string got; ///< in words: `queue calibration`, `refused: ...`
};

/// A rule, and how many tests come to it: those that it turns away from a queue, and for the queue
/// itself those that it takes.
struct RuleCount {
    std::string rule; ///< in words
    int line = 0;
    int tests = 0;
};

struct CaseReport {
    std::vector<CaseResult> results; ///< in the order of the file
    std::vector<RuleCount> rules;    ///< every rule there is, in the order of the file
};

/// Tries all tests of a policy against `decide`.
CaseReport run_cases(const Rules& rules);

} // namespace gpuq::policy
