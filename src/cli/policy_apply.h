// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/plan_simulation.h"
#include "cli/verb.h"
#include "govern/apply.h"
#include "report/json.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// Parts of `gpuq policy`. `plan` and `drift`: 0 when nothing is to be done, 10 when something is;
/// `plan` with jobs: 11 when the policy would not keep what it promises of their waits.
Result<int> policy_plan(Invocation& invocation);
Result<int> policy_apply(Invocation& invocation);
Result<int> policy_drift(Invocation& invocation);
Result<int> policy_rollback(Invocation& invocation);

/// Makes what `gpuq cluster up --policy` leaves to be made: courses need the nodes to be there. A
/// sentence for each thing that keeps it from that.
Result<std::vector<std::string>> apply_courses(Invocation& invocation, const std::string& policy);

/// What people and scripts are shown of a plan. Pure.
std::string plan_text(const govern::Plan& plan);
/// `simulation` null: none was asked for.
report::Json::Members plan_document(const govern::Plan& plan,
                                    const PlanSimulation* simulation = nullptr);

} // namespace gpuq::cli
