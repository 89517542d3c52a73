// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/supervise.h"

namespace gpuq::supervisor {

/// Copies the standard streams to the supervisor's socket and back, until the supervisor closes it.
/// 0, or k_status_no_supervisor with a line on stderr.
int relay(const Options& options);

/// Frees the allocation when the supervisor dies without having said how the run ended; also when
/// it has, but Slurm does not end the job (and with it this process) soon after.
int guard(Doors& doors, const Options& options);

/// Has the supervisor of the link record in its journal what this process has found of another
/// user. Nothing happens when it does not listen.
void report(const Options& options, const std::string& text);

} // namespace gpuq::supervisor
