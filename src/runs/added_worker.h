// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/result.h"
#include "ports/clock.h"
#include "ports/credentials.h"
#include "ports/store.h"
#include "runs/patience.h"

namespace gpuq {

class Cluster;

/// A worker that another one adds to its sweep.
struct AddedWorker {
    RunKey like; ///< the other worker's run
    RunKey key;
    int number = 1;
};

/// Queues it with the request, the environment and the rules of the other one, and copies
/// `tickets`, those of the calling process, if the other one has any. One request to Slurm, unless
/// its response is lost. Errors as those of submit_run; a worker that Slurm refused leaves no
/// trace.
Result<JobId> submit_worker(Store& store, Cluster& cluster, Clock& clock, SecretFiles& files,
                            LoginTickets& tickets, const AddedWorker& added,
                            const Patience& patience);

} // namespace gpuq
