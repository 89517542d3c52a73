// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"

#include <functional>
#include <string>
#include <vector>

namespace gpuq::remote {

/// The end of --forward inside a run, on its node.
struct Dialer {
    Descriptor in, out;                    ///< the stream frames of --forward: Dial, StreamBytes,
                                           ///< ...
    std::vector<std::string> destinations; ///< HOST:PORT, indexed by the number in Dial
    std::string node;                      ///< name of this node, for messages
    /// Called when a requested port is served by another user of this node.
    std::function<void(const std::string& text)> report;
};

/// Connects to the requested destinations and carries the bytes of these connections until `in`
/// ends. On this node, it connects only to servers of this process's own user and sends no byte to
/// servers of other users. The user of a server on another machine cannot be checked.
void run_dialer(Dialer dialer);

} // namespace gpuq::remote
