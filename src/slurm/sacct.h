// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <string>
#include <vector>

namespace gpuq::slurm {

/// What `sacct -P` prints of the jobs of everybody that were submitted since then, without steps,
/// in UTC; of what the site lets the caller see (PrivateData). `unreachable` without accounting or
/// sacct, or when it does not answer within five minutes; choose the configuration first
/// (cluster.h).
Result<std::string> jobs_since(Time since);

/// The command for it.
std::vector<std::string> sacct_command(Time since);

/// The header and the lines of jobs that were submitted since then: sacct tells of all that were
/// still there.
std::string submitted_since(const std::string& text, Time since);

} // namespace gpuq::slurm
