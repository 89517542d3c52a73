// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "ports/job.h"

namespace gpuq {

/// Whether a sweep that chooses its number of workers itself takes GPUs that other jobs wait for.
/// Pure.
///
/// It gives way to the user's own jobs that could start in the queue of `worker`, except those of
/// sweeps. To those of other users it gives way while the user holds more GPUs in this queue than
/// each of the others; `more`: additional workers, as large as this one. Jobs that the site hides
/// from the user do not count. False if `worker` is not among the jobs.
bool must_give_way(const AllJobs& all, JobId worker, int more);

} // namespace gpuq
