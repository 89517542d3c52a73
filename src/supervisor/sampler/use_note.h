// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/context.h"

#include <chrono>
#include <string>

namespace gpuq::supervisor {

/// At the end of a link, notes the use of its GPUs in the job's comment, which Slurm's accounting
/// keeps when the job ends. A helper makes one request, never repeated, to slurmctld, or to
/// slurmdbd if Slurm has ended the job. No process waits for it longer than Patience::noting.
/// Without usable samples no request is made.
///
/// `allocated`: the time for which the link held its GPUs, summed over all of them. Returns what
/// was noted; empty: nothing.
std::string note_use(Services& services, const Options& options,
                     std::chrono::milliseconds allocated, JobEnd end);

} // namespace gpuq::supervisor
