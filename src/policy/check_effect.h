// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/finding_list.h"
#include "policy/policy.h"

#include <vector>

namespace gpuq::policy {

/// The part of check() that reports rules without effect: a queue behind one that accepts all of
/// its jobs, a limit behind a tighter one. `states` are the policies of all times, as made by
/// policy_at() (policy/calendar.h); a rule is reported only if it has no effect in any of them.
void check_effects(const std::vector<Policy>& states, FindingList& findings);

} // namespace gpuq::policy
