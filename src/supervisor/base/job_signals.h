// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

namespace gpuq::supervisor {

/// Slurm signals all processes of a job before it ends the job. These signals are meant for the
/// program; the other processes continue, and are needed most just then. The signals are caught,
/// not ignored, so that programs executed by this process get the default handling back. System
/// calls are restarted, except those that never are, such as poll (signal(7)).
void heed_no_job_signals();

/// These signals.
std::vector<int> job_signals();

} // namespace gpuq::supervisor
