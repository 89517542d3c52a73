// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/clock.h"
#include "ports/job.h"
#include "ports/store.h"
#include "runs/status.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

class Cluster;
class Accounting;

/// The interfaces used by query_status(); those to Slurm are opened only if the disk does not
/// suffice.
struct StatusSources {
    Store& store;
    Clock& clock;
    std::function<Result<Cluster*>()> cluster;
    std::function<Result<Accounting*>()> accounting;
};

enum class SlurmQuery {
    if_needed, ///< if some run has neither an end nor a fresh heartbeat on disk
    never,     ///< use the disk alone
};

struct RunStatuses {
    std::vector<RunStatus> runs; ///< one for each key, in the same order
    std::string slurm_silent;    ///< why Slurm did not respond to the query; else empty
    std::optional<std::vector<Job>> own_jobs; ///< the user's jobs, if Slurm returned them
};

/// The status of runs: reads the disk, makes at most one query to Slurm for all runs, and one to
/// accounting for each run that Slurm no longer knows.
///
/// Repairs the inconsistencies that it finds, so that nothing is lost, leaked or requested twice: a
/// job found by the key in its comment gets its job.json; a pending job with a stop request is
/// cancelled; an allocation without a supervisor is ended; a missing next link of a chain is
/// submitted; an end known only to Slurm is recorded. A failed repair is not an error: the next
/// call retries it.
RunStatuses query_status(const StatusSources& services, const std::vector<RunKey>& keys,
                         SlurmQuery query = SlurmQuery::if_needed);

/// The same for one run.
RunStatus query_run(const StatusSources& services, const RunKey& key,
                    SlurmQuery query = SlurmQuery::if_needed);

} // namespace gpuq
