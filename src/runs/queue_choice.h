// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/cluster.h"
#include "runs/asked_for.h"
#include "runs/plan.h"

#include <chrono>
#include <string>
#include <vector>

/// Which queue a run goes to; plan.h has the rules.
namespace gpuq {

bool holds(const Partition& queue, std::chrono::minutes walltime);
bool has_nodes(const Partition& queue, int nodes);

/// Slurm would let the job wait for nodes that there are not.
Error too_many_nodes(const std::vector<Partition>& partitions, const Partition& queue, int nodes);

/// What the policy says of the chains of a queue, or null.
const ChainLimits* chain_limits(const Surroundings& surroundings, const Partition& queue);

/// The longest queue whose runs may go on beyond its limit, or null.
const Partition* longest_with_chains(const std::vector<Partition>& partitions,
                                     const Surroundings& surroundings);

/// `chainable`: the program is known to save checkpoints. Never a queue that is closed to this
/// person, unless they name it.
Result<const Partition*> choose_queue(const AskedFor& asked,
                                      const std::vector<Partition>& partitions, bool chainable,
                                      const Surroundings& surroundings);

/// The queues that are asked of Slurm. Of a policy's queues, all that would hold the run, the
/// smallest first: who may use which is the policy's to say, and the first that takes it gets it.
std::vector<std::string> queue_names(const AskedFor& asked,
                                     const std::vector<Partition>& partitions,
                                     const Partition& queue, const Surroundings& surroundings);

} // namespace gpuq
