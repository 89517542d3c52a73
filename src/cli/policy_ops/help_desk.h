// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/policy_ops/caller.h"
#include "policy/help_desk.h"
#include "ports/job.h"

#include <optional>
#include <string>

/// Actions of the help desk on other users' jobs. Its members call the policy's helper by sudo; the
/// helper checks their rights and records the action.
namespace gpuq::cli {

/// The account through which this user may act on a job of others; nothing if the user has no
/// such right.
std::optional<std::string> desk_helper(Services& services, policy::DeskRight right);

/// The policy in force if this account is its helper, and runs gpuq for the user who called sudo.
/// Nothing in other accounts: a user may have become another one by sudo.
std::optional<policy::Policy> policy_as_helper(Services& services, const Caller& caller);

/// In the helper: `denied` unless `caller` owns the job or has the right.
Result<void> check_desk(const policy::Policy& policy, const Caller& caller, const Job& job,
                        policy::DeskRight right);

/// In the helper, immediately before it acts: adds a line to `audit.log` in its state directory,
/// unless the job is the caller's own. `io`: do not act.
Result<void> record_desk(Services& services, const Caller& caller, const Job& job,
                         const std::string& action);

} // namespace gpuq::cli
