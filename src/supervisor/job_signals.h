// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

namespace gpuq::supervisor {

/// Signals that reach all processes of a job, as Slurm sends them before it ends one, are for the
/// program; what works beside it goes on, and is needed most just then. They are caught and not
/// ignored: what this process executes has them as usual again. System calls are restarted, but
/// for those that never are, as poll (signal(7)).
void heed_no_job_signals();

} // namespace gpuq::supervisor
