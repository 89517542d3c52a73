// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "remote/holder.h"

#include <functional>
#include <string>

namespace gpuq::remote {

struct ServeOptions {
    std::string program; ///< absolute path of the executable that runs verbs
    Identity identity;
    std::string place = "gpuq-serve"; ///< prefix of the names of the sessions' sockets
    std::string early = {};           ///< first bytes of `in`, already known from the command line
    int in = 0, out = 1;
    /// Called in a separate process for each connection that returns to its session, for other uses
    /// of a new login. The end of that connection does not wait for it.
    std::function<void()> came_back = [] {};
};

/// The command that ssh starts on the login host. Passes the connection to the session that the
/// client requests, or starts a new session in a separate process, which outlives this one. Returns
/// the exit status when the connection has ended. Takes ownership of `in` and `out`.
Result<int> serve(const ServeOptions& options);

} // namespace gpuq::remote
