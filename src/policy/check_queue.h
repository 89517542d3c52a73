// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/finding_list.h"
#include "policy/policy.h"

namespace gpuq::policy {

/// Whether the pool is one of the queue's, for overflow or otherwise.
bool is_used(const Queue& queue, const Pool& pool);

/// The part of check() that concerns one queue by itself: its pools and models, times, idle GPUs
/// and limits, and values among them that contradict each other.
void check_queue(const Policy& policy, const Queue& queue, FindingList& findings);

} // namespace gpuq::policy
