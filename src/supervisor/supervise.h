// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/context.h"

#include <optional>

/// The process inside the job. It consists of two processes: the *guardian*, which Slurm starts,
/// and its child, the *supervisor*, which owns the program. The guardian is a subreaper: if the
/// supervisor is killed, the processes it started become the guardian's children; the guardian
/// kills them, records the loss in the journal and frees the allocation.
namespace gpuq::supervisor {

/// Runs the program of a run to its end and returns the exit status of the run. Forks; call it
/// while single-threaded. Errors are part of the result: the run's `Ending` is recorded in the
/// journal and sent to every client.
int supervise(Services& services, const Options& options);

struct LinkStart;

/// The actual supervisor, in the process started by the guardian. `goodbye` and `guardian` are
/// pipes: the status is written to the former; the latter closes when the guardian dies.
/// `link_start` is set for later links of a chain. Ends the process.
[[noreturn]] void run_program(Services& services, const Options& options,
                              const std::optional<LinkStart>& link_start, int goodbye,
                              int guardian);

} // namespace gpuq::supervisor
