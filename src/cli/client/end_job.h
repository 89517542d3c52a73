// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/run.h"

#include <string_view>

namespace gpuq::cli {

/// The end of a run whose supervisor was never started by its srun, which printed `messages`.
Ending never_started(std::string_view messages, Time now);
/// The end of a run whose srun was killed with the login before it could be detached.
Ending lost_with_login(Time now);

/// Records the end of a run that has an allocation but no supervisor, and frees its GPUs. False if
/// Slurm did not confirm it, or if it could not be recorded: a later status query will find it.
bool end_job(Services& services, const Run& run, JobId job, const Ending& ending);

} // namespace gpuq::cli
