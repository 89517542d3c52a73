// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

namespace gpuq::policy {

/// Whether `first` accepts every job that `queue` accepts, as far as the policy shows; then `queue`
/// is never chosen for a job that names no queue and could use `first`.
bool covers(const Policy& policy, const Queue& first, const Queue& queue);

} // namespace gpuq::policy
