// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"
#include "embedded/state.h"

#include <functional>
#include <string>
#include <vector>

/// Starting, waiting for and ending single daemons of a cluster.
namespace gpuq::embedded {

/// A start on its way.
struct Start {
    Places places;
    State state; ///< `daemons` are those that run already
};

/// Starts `program` as the daemon `name`, unless that runs already.
Result<void> launch(Start& start, const std::string& name, const std::string& program,
                    std::vector<std::string> options);

/// Waits up to 30 s for `ready`. `io` with the end of its log when a daemon of this start dies or
/// `daemon` is not ready in time; `stopped` by a held signal.
Result<void> wait_until(const Start& start, const std::string& daemon,
                        const std::function<bool()>& ready);

/// The error for a daemon, or a helper program of one, that failed: the end of its log.
Error died(const Places& places, const std::string& daemon);

/// True when the daemon of this name was started and has not been found dead.
bool is_running(const Start& start, const std::string& name);

/// Ends one daemon by SIGTERM, after 10 s by SIGKILL. Success also when it does not run.
void end_daemon(Start& start, const std::string& name);

/// True when a process accepts connections on the local socket `path`.
bool listens(const std::string& path);

} // namespace gpuq::embedded
