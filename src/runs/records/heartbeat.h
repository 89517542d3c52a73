// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// The last sign of life of a supervisor: link-N/heartbeat, rewritten in place every five seconds.
struct Heartbeat {
    Time at; ///< whole seconds of the node's clock
    JobId job;
    int pid = 0;           ///< the supervisor's, on its node
    std::uint64_t out = 0; ///< bytes of output written to the logs so far
    std::uint64_t err = 0;
    bool operator==(const Heartbeat&) const = default;
};

/// One line of `UNIXTIME JOBID PID OUT ERR`, padded with blanks to this length, so that rewriting
/// it needs no additional space on a full disk.
constexpr std::size_t k_heartbeat_size = 80;
constexpr std::chrono::seconds k_heartbeat_period{5};
/// A heartbeat younger than this proves that the run is alive, without a query to Slurm.
constexpr std::chrono::seconds k_heartbeat_fresh{15};

std::string to_line(const Heartbeat& beat);
/// Nothing if the text is empty, incomplete or not a heartbeat.
std::optional<Heartbeat> parse_heartbeat(std::string_view text);

/// A node's clock may be this far ahead. By default, munge refuses its credentials, and so Slurm
/// its messages, if the difference is larger.
constexpr std::chrono::minutes k_heartbeat_ahead{5};

/// True if the heartbeat is no older than `age`, or up to `k_heartbeat_ahead` in the future. A time
/// beyond that proves nothing.
bool is_within(const Heartbeat& beat, std::chrono::seconds age, Time now);
/// The same for `k_heartbeat_fresh`.
bool is_fresh(const Heartbeat& beat, Time now);

} // namespace gpuq
