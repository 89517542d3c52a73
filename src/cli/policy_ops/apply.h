// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/policy_ops/plan_simulation.h"
#include "govern/apply.h"
#include "report/json.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// Subcommands of `gpuq policy`. `plan` and `drift` return 0 if there is nothing to do, else 10;
/// `plan` with jobs returns 11 if the policy would miss its own wait targets.
Result<int> policy_plan(Invocation& invocation);
Result<int> policy_apply(Invocation& invocation);
Result<int> policy_advance(Invocation& invocation);
Result<int> policy_drift(Invocation& invocation);
Result<int> policy_rollback(Invocation& invocation);

/// Completes `gpuq cluster up --policy`: creates the courses, for which the nodes must exist.
/// Returns a sentence for each obstacle.
Result<std::vector<std::string>> apply_courses(Invocation& invocation, const std::string& policy);

/// Text and JSON of a plan. Pure.
std::string plan_text(const govern::Plan& plan);
/// `simulation` null: none was requested.
report::Json::Members plan_document(const govern::Plan& plan,
                                    const PlanSimulation* simulation = nullptr);

} // namespace gpuq::cli
