// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "policy/policy.h"

#include <string>
#include <vector>

namespace gpuq::policy {

using Object = SlurmObject;
using gpuq::word;

/// Everything that a policy wants of Slurm, by kind in the order above, by name within a kind.
///
/// Spelled as core/slurm_object.h says; node lists as they stand in the policy.
///
/// - A queue is its partitions (doors.h), a QOS `gpuq_QUEUE` with the hard limits, which the
///   generated lua gives to its jobs and which alone opens its partitions, and `gpuq_QUEUE_soft`
///   with the soft ones, as the partition QOS of the preferred doors: where a partition's QOS has a
///   limit, the job's own is not looked at (resource_limits.shtml, "Hierarchy").
/// - Who may use a queue is who has its QOS: Slurm holds that, whatever becomes of the lua.
/// - GPU-hours are what counts in fair share: TRESBillingWeights has nothing but GPUs.
std::vector<Object> objects_of(const Policy& policy);

/// The text that slurm.conf includes: settings and partitions.
std::string slurm_conf_of(const Policy& policy);
std::string slurm_conf_of(const std::vector<Object>& objects);

} // namespace gpuq::policy
