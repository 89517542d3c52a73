// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/context.h"

namespace gpuq::supervisor {

/// Copies the standard streams to the supervisor's socket and back, until the supervisor closes it.
/// Returns 0, or k_status_no_supervisor with a message on stderr.
int relay(const Options& options);

/// Frees the allocation if the supervisor dies without reporting how the run ended, or if it has
/// reported that but Slurm does not end the job (and with it this process) soon after.
int guard(Services& services, const Options& options);

/// Has the supervisor of the link record in its journal a finding of this process about another
/// user. Does nothing if the supervisor does not listen.
void report(const Options& options, const std::string& text);

} // namespace gpuq::supervisor
