// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "govern/apply.h"
#include "report/json.h"

#include <string>

namespace gpuq::cli {

/// Parts of `gpuq policy`. `plan` and `drift`: 0 when nothing is to be done, 10 when something is.
Result<int> policy_plan(Invocation& invocation);
Result<int> policy_apply(Invocation& invocation);
Result<int> policy_drift(Invocation& invocation);
Result<int> policy_rollback(Invocation& invocation);

/// What people and scripts are shown of a plan. Pure.
std::string plan_text(const govern::Plan& plan);
report::Json::Members plan_document(const govern::Plan& plan);

} // namespace gpuq::cli
