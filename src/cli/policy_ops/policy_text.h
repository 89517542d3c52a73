// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/cases.h"
#include "policy/decide.h"
#include "policy/finding.h"
#include "report/json.h"

#include <optional>
#include <string>
#include <vector>

/// Text and JSON of `gpuq policy`. Pure.
namespace gpuq::cli {

/// One line per finding, and a last line with the totals.
std::string check_text(const std::vector<policy::Finding>& findings, const std::string& file);
report::Json::Members check_document(const std::vector<policy::Finding>& findings,
                                     const std::string& file);

/// The decision on a request: the verdict, the rules of its queue with their places in the file,
/// and changes that would help if it is refused. `held`: GPUs that the user holds in the queue now;
/// unset: unknown.
struct Explanation {
    policy::Submission job;
    policy::Verdict verdict;
    std::optional<int> held;
    std::vector<std::string> remedies;
};
std::string explain_text(const policy::Rules& rules, const Explanation& explanation);
report::Json::Members explain_document(const policy::Rules& rules, const Explanation& explanation);

/// Changes with which the policy would accept a job that it refuses: less time, no partition, fewer
/// GPUs, no CPUs and memory, no model.
std::vector<std::string> policy_remedies(const policy::Rules& rules, const policy::Submission& job);

/// `lua`: the tests that the generated script decides differently, with its results.
struct TestReport {
    policy::CaseReport cases;
    std::vector<std::string> lua;
};
std::string test_text(const policy::Rules& rules, const TestReport& report);
report::Json::Members test_document(const TestReport& report);
/// True if every test passed, the generated script agreed and every rule has a test.
bool is_complete(const TestReport& report);

} // namespace gpuq::cli
