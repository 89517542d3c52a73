// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <string>
#include <vector>

/// What accounting has to know before a controller starts under a policy. Pure.
namespace gpuq::embedded {

/// The sacctmgr(1) commands, without `sacctmgr -i`, that make accounts, QOS, who has them, and
/// shares as the policy of cluster `cluster` says; doing it again changes nothing.
std::vector<std::vector<std::string>> accounting_commands(const policy::Policy& policy,
                                                          const std::string& cluster);

} // namespace gpuq::embedded
