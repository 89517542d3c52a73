// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/run.h"
#include "ports/job.h"
#include "supervisor/base/memory_events.h"

#include <bitset>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Why a program was never started.
struct NotStarted {
    int status = 0;
    std::string detail;
};

/// Why the supervisor or Slurm is ending a program that still runs.
struct Termination {
    Cause cause = Cause::stopped;
    std::string detail;
};

/// Everything observed about the program until it was gone.
struct Observed {
    std::optional<int> wait_status; ///< as returned by waitpid
    std::optional<NotStarted> not_started;
    std::optional<Termination> termination;
    std::optional<Termination> grace; ///< grace period before preemption: the program may die from
                                      ///< the TERM that announces it
    std::bitset<65> asked_signals;    ///< sent to it on behalf of a client
    std::string rank;                 ///< the rank that the wait status belongs to; empty: no ranks
    MemoryKills memory;               ///< processes killed by the kernel in the meantime
    bool gpu_out_of_memory = false;   ///< according to the last output
};

/// The sentence about kills that the program survived, or may have survived; empty without any.
std::string to_sentence(const MemoryKills& kills);

/// Determines how and why the run ended: the documented exit status, cause and detail.
Ending decide(const Observed& observed, Time at);

/// Derives from the job's current state why Slurm sent TERM; nullopt if the job simply continues
/// (the signal was sent with `scancel -s`).
std::optional<Termination> why_terminated(JobState state);

} // namespace gpuq::supervisor
