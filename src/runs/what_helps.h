// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/cluster.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Something that a person can do about a wait.
struct Advice {
    std::string code;    ///< stable, for scripts: `other_queue`, `fewer_gpus`, ...
    std::string command; ///< what to type; may be empty
    std::string why;     ///< in one line, without a full stop
    bool operator==(const Advice&) const = default;
};

/// What would let a waiting run start sooner, most promising first. `reason` is Slurm's word.
/// Promises nothing: others may be faster. Pure.
std::vector<Advice> what_helps(const Request& request, JobId job, std::string_view reason,
                               const Inventory& inventory);

/// What the nodes of a queue, or of several, comma-separated, have at most, each by itself, for
/// somebody who asked for too much: `a node of queue short has 4 k80, 8 cores and 11 GB at most`.
/// Empty when it has no nodes. Pure.
std::string most_of_a_node(const std::vector<Node>& nodes, const std::string& queue);

} // namespace gpuq
