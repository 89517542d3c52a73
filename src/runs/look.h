// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/store.h"
#include "runs/status.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// The doors that a look goes through; those of Slurm are opened only when the disk can't say.
struct LookDoors {
    Store& store;
    Clock& clock;
    std::function<Result<Cluster*>()> cluster;
    std::function<Result<Accounting*>()> accounting;
};

enum class Ask {
    if_needed, ///< when some run has neither an end nor a fresh heartbeat on disk
    never,     ///< the disk alone
};

struct Looked {
    std::vector<RunStatus> runs; ///< one for each key, in their order
    std::string slurm_silent;    ///< why Slurm, which was asked, gave no answer; else empty
    std::optional<std::vector<Job>> own_jobs; ///< its answer, where it gave one
};

/// What is known about runs: one reading of the disk and at most one question to Slurm for all of
/// them, and one to accounting for each that Slurm has forgotten.
///
/// Puts right what it finds, so that nothing is lost, leaked or asked for again: a job found by the
/// key in its comment gets its job.json; one whose owner wanted it stopped while it waits is
/// cancelled; an allocation that never had a supervisor is ended; an end that only Slurm knew is
/// written down. None of that can fail the look: what can't be written is found again next time.
Looked look(const LookDoors& doors, const std::vector<RunKey>& keys, Ask ask = Ask::if_needed);

/// The same for one run.
RunStatus look_at(const LookDoors& doors, const RunKey& key, Ask ask = Ask::if_needed);

} // namespace gpuq
