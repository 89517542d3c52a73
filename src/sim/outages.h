// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <vector>

namespace gpuq::sim {

/// How often nodes fail.
struct Failures {
    Seconds every = std::chrono::days{90}; ///< of one node, on average
    Seconds down = std::chrono::hours{4};
};

/// Outages of all nodes of the machine until `end`, by node. They depend only on the numbers of the
/// nodes, so that machines with the same nodes have the same ones.
std::vector<Outage> outages_of(const Machine& machine, const Failures& failures, Seconds end);

} // namespace gpuq::sim
