// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "policy/policy.h"

#include <string>
#include <vector>

namespace gpuq::policy {

using Object = SlurmObject;
using gpuq::word;

/// All objects in Slurm that a policy requires, sorted by kind in the order of Object::Kind, then
/// by name.
///
/// Values as described in core/slurm_object.h; node lists as written in the policy.
///
/// - A queue consists of its partitions (queue_partitions.h), a QOS `gpuq_QUEUE` with the hard
/// limits, which
///   the generated script assigns to its jobs and which its partitions require, and
///   `gpuq_QUEUE_soft` with the soft limits, as the partition QOS of the preferred partitions: a
///   limit of the partition QOS overrides that of the job's QOS (resource_limits.shtml,
///   "Hierarchy").
/// - The users of a queue are those who have its QOS: Slurm enforces this independently of the
///   script.
/// - Fair share counts GPU-hours: TRESBillingWeights contains only GPUs.
///
/// A policy without queues requires none, not even a script.
std::vector<Object> objects_of(const Policy& policy);

/// The text that slurm.conf includes: settings and partitions.
std::string slurm_conf_of(const Policy& policy);
std::string slurm_conf_of(const std::vector<Object>& objects);

} // namespace gpuq::policy
