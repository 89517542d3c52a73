// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/run.h"
#include "ports/cluster.h"
#include "supervisor/memory_events.h"

#include <bitset>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Why a program never ran.
struct NotStarted {
    int status = 0;
    std::string detail;
};

/// Why the supervisor, or Slurm, was ending the program while it still ran.
struct Killing {
    Cause cause = Cause::stopped;
    std::string detail;
};

/// What was seen of the program until it was gone.
struct Observed {
    std::optional<int> wait_status; ///< as waitpid gives it
    std::optional<NotStarted> not_started;
    std::optional<Killing> killing;
    std::optional<Killing> grace;   ///< it is to go: it may die of the TERM that says so
    std::bitset<65> asked_signals;  ///< sent to it on a client's behalf
    std::string rank;               ///< whose wait status it is; empty: there are no ranks
    MemoryKills memory;             ///< processes that the kernel killed meanwhile
    bool gpu_out_of_memory = false; ///< the last output says so
};

/// The sentence for kills that the program outlived, or may have; empty when there were none.
std::string to_sentence(const MemoryKills& kills);

/// How the run ended, and why: exit status and words of the contract.
Ending decide(const Observed& observed, Time at);

/// Why Slurm sent TERM, out of what it says about the job now; nothing when the job just goes on
/// (somebody sent the signal with `scancel -s`).
std::optional<Killing> why_terminated(JobState state);

} // namespace gpuq::supervisor
