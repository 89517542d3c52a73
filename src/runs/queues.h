// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/store.h"

#include <string>
#include <vector>

namespace gpuq {

/// The queues of a cluster, and whether they were kept from an earlier question.
struct Queues {
    std::vector<Partition> partitions;
    bool from_disk = false;
};

/// Whether a request's queues, comma-separated, name this one: under a policy it may be in several.
bool names_queue(const std::string& queues, const std::string& queue);

/// Which of them a partition is: the one of its name, or the policy's queue whose inner partition
/// it is, as `calibration` of `calibration-visu`. Empty: none of them.
std::string queue_of(const std::string& queues, const std::string& partition);

/// How long an answer about queues is used again. Operators change queues rarely, people start runs
/// in bursts; who is refused on the strength of a kept answer asks anew.
constexpr std::chrono::seconds k_queues_are_fresh{60};

/// The kept answer when it is fresh enough, else Slurm's own: one RPC.
Result<Queues> find_queues(Store& store, Cluster& cluster, Clock& clock);

/// Slurm's own, whatever is kept.
Result<Queues> ask_for_queues(Cluster& cluster);

/// Keeps an answer for the next runs of this user. Off the path to the first output byte; a failure
/// costs only the next question.
void keep_queues(Store& store, const std::string& cluster, const Queues& queues, Time now);

} // namespace gpuq
