// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/spec.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::embedded {

/// Identifies a process even if its pid is reused.
struct ProcessId {
    int pid = -1;
    std::uint64_t start_time = 0; ///< from /proc/PID/stat, in ticks since boot
    bool operator==(const ProcessId&) const = default;
};

struct Daemon {
    std::string name; ///< munged, mariadbd, slurmdbd, slurmctld, slurmd-n0 ...
    ProcessId process;
    bool operator==(const Daemon&) const = default;
};

/// State kept in DIR/cluster.state by `up`, for `status`, `down` and the next `up`.
struct State {
    ClusterSpec spec;
    Ports ports;
    std::string run;                ///< Places::run of the last start
    std::string boot;               ///< boot id at the last start
    std::int64_t started_at = 0;    ///< Unix time
    bool up = false;                ///< false after `down` and during a start
    std::string accounting_failure; ///< why slurmdbd does not run, one line; else empty
    std::vector<Daemon> daemons;
    bool operator==(const State&) const = default;
};

/// Lines of `KEY VALUE`, the first one being `gpuq-cluster 1`.
std::string to_text(const State& state);

/// `usage` for an invalid text or one of a newer gpuq. Unknown keys are an error.
Result<State> parse_state(std::string_view text);

} // namespace gpuq::embedded
