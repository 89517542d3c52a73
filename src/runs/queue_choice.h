// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/nodes.h"
#include "runs/plan.h"
#include "runs/run_parameters.h"

#include <chrono>
#include <string>
#include <vector>

/// Chooses the queue of a run; plan.h documents the rules.
namespace gpuq {

bool holds(const Partition& queue, std::chrono::minutes walltime);
bool has_nodes(const Partition& queue, int nodes);

/// The error for a run that requests more nodes than the queue allows: Slurm would leave it pending
/// forever.
Error too_many_nodes(const std::vector<Partition>& partitions, const Partition& queue, int nodes);

/// The policy's chain limits of a queue, or null.
const ChainLimits* chain_limits(const SiteContext& site_context, const Partition& queue);

/// The queue with the largest limit beyond which runs may continue as chains, or null.
const Partition* longest_with_chains(const std::vector<Partition>& partitions,
                                     const SiteContext& site_context);

/// Chooses the queue. `chainable`: the program is known to save checkpoints. Never a queue that is
/// closed to this user, unless it was requested by name. One that is down, but accepts jobs, only
/// if none that is up allows the run: it waits until the queue is opened.
Result<const Partition*> choose_queue(const RunParameters& parameters,
                                      const std::vector<Partition>& partitions, bool chainable,
                                      const SiteContext& site_context);

/// The queues to name in the request to Slurm. Under a policy: all of its queues that allow the
/// run, smallest first; the policy decides about access and puts the run into the first one that
/// accepts it.
std::vector<std::string> queue_names(const RunParameters& parameters,
                                     const std::vector<Partition>& partitions,
                                     const Partition& queue, const SiteContext& site_context);

} // namespace gpuq
