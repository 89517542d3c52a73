// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/insight/overview.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The overview of all users, which a service of the site writes to a file on each host: the users
/// of that host read it instead of querying Slurm. Pure.
///
/// The first line is `gpuq-overview 1 SECONDS` (checked_at); the second an overview without a user,
/// as cached (overview_record.h); then, for each user with jobs, their number and an overview that
/// has only these jobs; the last line is `end`.
namespace gpuq {

/// How often the file is written at most.
constexpr std::chrono::seconds k_shared_again{30};

/// What the file contains for one user.
struct SharedOverview {
    Overview overview;
    /// When it was last checked that Slurm hides nothing from users, and reservations were queried.
    Time checked_at;
};

/// The file, from full queries made at `now`, which took `took`. `run_times`: those observed
/// before.
std::string shared_overview_text(const std::string& cluster, const Inventory& inventory,
                                 const AllJobs& all, std::vector<ReservedGpus> reserved,
                                 Time checked_at, Time now, std::chrono::milliseconds took,
                                 const RunTimes& run_times = {});

/// The overview of a user as of the time of the file. Nothing if the text is invalid, incomplete,
/// of another version or of another cluster.
std::optional<SharedOverview> parse_shared_overview(std::string_view text,
                                                    const std::string& cluster, std::uint32_t uid);

/// Time between two of the service's queries: longer if they take long (see due()).
std::chrono::milliseconds shared_pause(const Overview& overview);

/// False if the file should have been replaced since: the service has stopped.
bool is_recent(const Overview& shared, Time now);

} // namespace gpuq
