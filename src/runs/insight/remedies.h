// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/nodes.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// An action that may shorten a wait.
struct Advice {
    std::string code;    ///< stable, for scripts: `other_queue`, `fewer_gpus`, ...
    std::string command; ///< the command to run; may be empty
    std::string why;     ///< one line, without a full stop
    bool operator==(const Advice&) const = default;
};

/// Actions that could let a waiting run start sooner, most promising first. `reason` is Slurm's
/// reason. There is no guarantee: other jobs may be faster. For the worker of a sweep, they are
/// options of `gpuq sweep`. Pure.
std::vector<Advice> remedies(const Request& request, JobId job, std::string_view reason,
                             const Inventory& inventory);

/// The largest amount of each resource on a node of a queue, or of several comma-separated queues,
/// for a user who requested too much: `a node of queue short has 4 k80, 8 cores and 11 GB at most`.
/// Empty if the queue has no nodes. Pure.
std::string most_of_a_node(const std::vector<Node>& nodes, const std::string& queue);

} // namespace gpuq
