// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <string>
#include <vector>

/// Accounting objects that must exist before a controller starts under a policy. Pure.
namespace gpuq::embedded {

/// The sacctmgr(1) commands (without `sacctmgr -i`) that create the accounts, QOS, access and
/// shares of the policy in cluster `cluster`. They are idempotent.
std::vector<std::vector<std::string>> accounting_commands(const policy::Policy& policy,
                                                          const std::string& cluster);

} // namespace gpuq::embedded
