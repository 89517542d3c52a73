// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"
#include "embedded/state.h"

#include <functional>
#include <string>
#include <vector>

/// Functions to start, await and end single daemons of a cluster.
namespace gpuq::embedded {

/// A start in progress.
struct Start {
    Places places;
    State state; ///< `daemons`: those already running
};

/// Starts `program` as the daemon `name`, unless it is running.
Result<void> launch(Start& start, const std::string& name, const std::string& program,
                    std::vector<std::string> options);

/// Waits up to 30 s for `ready`. `io` with the end of the log when a daemon of this start dies or
/// `daemon` is not ready in time; `stopped` by a held signal.
Result<void> wait_until(const Start& start, const std::string& daemon,
                        const std::function<bool()>& ready);

/// The error for a failed daemon or helper program of one, with the end of its log.
Error died(const Places& places, const std::string& daemon);

/// True when this daemon was started and is not known to have died.
bool is_running(const Start& start, const std::string& name);

/// Ends a daemon with SIGTERM, after 10 s with SIGKILL. Does nothing if it is not running.
void end_daemon(Start& start, const std::string& name);

/// True when a process accepts connections on the local socket `path`.
bool listens(const std::string& path);

} // namespace gpuq::embedded
