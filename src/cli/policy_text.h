// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/cases.h"
#include "policy/decide.h"
#include "policy/finding.h"
#include "report/json.h"

#include <optional>
#include <string>
#include <vector>

/// What `gpuq policy` says, as people and scripts are shown it. Pure.
namespace gpuq::cli {

/// A line for each finding, and a last one with the sum.
std::string check_text(const std::vector<policy::Finding>& findings, const std::string& file);
report::Json::Members check_document(const std::vector<policy::Finding>& findings,
                                     const std::string& file);

/// What a request meets: the verdict, the rules of its queue with their places, and what would
/// help when it is refused. `held`: GPUs that the user has there now; unset: not known.
struct Explanation {
    policy::Submission job;
    policy::Verdict verdict;
    std::optional<int> held;
    std::vector<std::string> helps;
};
std::string explain_text(const policy::Rules& rules, const Explanation& explanation);
report::Json::Members explain_document(const policy::Rules& rules, const Explanation& explanation);

/// What would have the policy take a job that it refuses, in words: less time, fewer GPUs, no
/// model.
std::vector<std::string> what_would_help(const policy::Rules& rules, const policy::Submission& job);

/// `lua`: what the generated script made of the tests that it saw differently, by test.
struct TestReport {
    policy::CaseReport cases;
    std::vector<std::string> lua;
};
std::string test_text(const policy::Rules& rules, const TestReport& report);
report::Json::Members test_document(const TestReport& report);
/// Every test passed, the lua agreed and no rule is without a test.
bool is_complete(const TestReport& report);

} // namespace gpuq::cli
