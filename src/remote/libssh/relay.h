// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"
#include "remote/libssh/library.h"

#include <memory>

namespace gpuq::remote {

/// A session on which the user is logged in, with an open channel on which nothing was requested
/// yet. The session owns the channel.
struct LoggedIn {
    SshSession session;
    ssh_channel channel = nullptr;
};

/// A socket whose other end is a channel.
struct Relayed {
    Descriptor socket;
    std::shared_ptr<Descriptor> done; ///< readable when the relay has ended
};
/// Passes bytes between the channel and the socket, in a thread of its own, until one of them ends;
/// then ends the other. `io`.
Result<Relayed> relay(const Libssh& ssh, LoggedIn through);

} // namespace gpuq::remote
