// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "remote/holder.h"

#include <functional>
#include <string>

namespace gpuq::remote {

struct ServeOptions {
    std::string program; ///< what verbs are verbs of: an absolute path
    Identity identity;
    std::string place = "gpuq-serve"; ///< begins the names of the sessions' sockets
    std::string early = {};           ///< the bytes with which `in` will begin, known already
    int in = 0, out = 1;
    /// In a process of its own, for each connection that comes back to its session: what a login
    /// is good for besides. That connection's end does not wait for it.
    std::function<void()> came_back = [] {};
};

/// What ssh starts on the login host: finds the session that the client asks for and gives it the
/// connection, or starts one in a process of its own, which outlives this one. Returns when the
/// connection has ended: the exit status. Takes over `in` and `out`.
Result<int> serve(const ServeOptions& options);

} // namespace gpuq::remote
