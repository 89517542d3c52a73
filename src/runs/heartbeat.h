// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// What a supervisor last said of itself: link-N/heartbeat, rewritten in place every five seconds.
struct Heartbeat {
    Time at; ///< whole seconds, by the node's clock
    JobId job;
    int pid = 0;           ///< of the supervisor, on its node
    std::uint64_t out = 0; ///< bytes of output that had gone to the logs by then
    std::uint64_t err = 0;
    bool operator==(const Heartbeat&) const = default;
};

/// One line of `UNIXTIME JOBID PID OUT ERR`, padded with blanks to this length, so that rewriting
/// it needs no room on a full disk.
constexpr std::size_t k_heartbeat_size = 80;
constexpr std::chrono::seconds k_heartbeat_period{5};
/// For so long a heartbeat proves that the run is alive, and nobody asks Slurm.
constexpr std::chrono::seconds k_heartbeat_fresh{15};

std::string to_line(const Heartbeat& beat);
/// Nothing for an empty, torn or foreign text.
std::optional<Heartbeat> parse_heartbeat(std::string_view text);

/// True within `k_heartbeat_fresh`. A time to come counts, too: the node's clock is ahead.
bool is_fresh(const Heartbeat& beat, Time now);

} // namespace gpuq
