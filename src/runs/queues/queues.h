// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/clock.h"
#include "ports/nodes.h"
#include "ports/store.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

class Cluster;

/// The queues of a cluster, and whether they come from the cache.
struct Queues {
    std::vector<Partition> partitions;
    bool from_disk = false;
};

/// True if a request's comma-separated queues include this one: under a policy there may be
/// several.
bool names_queue(const std::string& queues, const std::string& queue);
/// Whether two lists of queues have one in common: a pending job may name several (Job::partition).
bool share_a_queue(std::string_view one, std::string_view other);

/// The queue in `queues` that a partition belongs to: the one with its name, or the policy queue
/// whose inner partition it is, such as `calibration` for `calibration-visu`. Empty if there is
/// none.
std::string queue_of(const std::string& queues, const std::string& partition);

/// How long cached queues are used. Operators change queues rarely, and users start runs in bursts;
/// a run refused because of cached queues is checked again with a fresh query.
constexpr std::chrono::seconds k_queues_are_fresh{60};

/// The cached queues if they are fresh enough, else a query to Slurm: one RPC.
Result<Queues> find_queues(Store& store, Cluster& cluster, Clock& clock);

/// Queries Slurm, ignoring the cache.
Result<Queues> query_queues(Cluster& cluster);

/// Caches the queues for this user's next runs. Not called before the first output byte; a failure
/// only costs another query.
void keep_queues(Store& store, const std::string& cluster, const Queues& queues, Time now);

} // namespace gpuq
