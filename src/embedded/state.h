// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/spec.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::embedded {

/// A process that can not be mistaken for a later one with the same number.
struct ProcessId {
    int pid = -1;
    std::uint64_t start_time = 0; ///< of /proc/PID/stat, in ticks since boot
    bool operator==(const ProcessId&) const = default;
};

struct Daemon {
    std::string name; ///< munged, mariadbd, slurmdbd, slurmctld, slurmd-n0 ...
    ProcessId process;
    bool operator==(const Daemon&) const = default;
};

/// What `up` leaves behind for `status`, `down` and the next `up`: the file DIR/cluster.state.
struct State {
    ClusterSpec spec;
    Ports ports;
    std::string run;                ///< Places::run of the last start
    std::string boot;               ///< of the machine, when it was started
    std::int64_t started_at = 0;    ///< Unix time
    bool up = false;                ///< false: `down` ended it, or a start is not complete
    std::string accounting_failure; ///< why slurmdbd does not run, one line; empty when it does
    std::vector<Daemon> daemons;
    bool operator==(const State&) const = default;
};

/// Lines `KEY VALUE`, the first one `gpuq-cluster 1`.
std::string to_text(const State& state);

/// `usage` for a text that is none, or of a newer gpuq. Keys that are not known are an error.
Result<State> parse_state(std::string_view text);

} // namespace gpuq::embedded
