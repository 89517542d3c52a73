// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <string>
#include <vector>

namespace gpuq::slurm {

/// The output of `sacct -P` for the jobs of all users submitted since `since`, without steps, in
/// UTC, as far as the site shows them to the caller (PrivateData). `unreachable` without accounting
/// or sacct, or if it does not respond within five minutes. Select the configuration first
/// (cluster.h).
Result<std::string> jobs_since(Time since);

/// The command that prints them.
std::vector<std::string> sacct_command(Time since);

/// The header and the lines of jobs submitted since `since`: sacct also prints earlier jobs that
/// had not ended by then.
std::string submitted_since(const std::string& text, Time since);

} // namespace gpuq::slurm
