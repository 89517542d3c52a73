// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"

#include <functional>
#include <string>
#include <vector>

namespace gpuq::remote {

/// The end of --forward inside a run, on its node.
struct Dialer {
    Descriptor in, out;                    ///< frames of --forward: Dial, StreamBytes and the like
    std::vector<std::string> destinations; ///< HOST:PORT, by the number in Dial
    std::string node;                      ///< this node's name, for messages
    /// Is given what another user of this node has that the run's owner asked for.
    std::function<void(const std::string& text)> report;
};

/// Connects to destinations and carries the bytes of these connections until `in` ends. On this
/// node only servers of this process's own user are connected to: whatever another user listens
/// with at such a port gets no byte. A destination on another machine is connected to as it is.
void run_dialer(Dialer dialer);

} // namespace gpuq::remote
