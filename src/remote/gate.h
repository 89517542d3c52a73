// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace gpuq::remote {

/// Serves streams (Dial, StreamBytes, ...) to a server of this process's user that listens on a
/// local socket with a path, such as Jupyter. Each Dial opens a connection to it, regardless of its
/// number.

/// How long connections to the server wait for a client that was cut off.
struct GatePatience {
    std::chrono::milliseconds alone = std::chrono::hours(3);
    /// The same once another client has come: a client that is alive comes back sooner.
    std::chrono::milliseconds beside_another = std::chrono::seconds(10);
};

/// Listens on the abstract name `name` for clients with a LastingLink, until its parent process
/// ends. Connections to the server survive those of the client, whose return is awaited. A client
/// gets its first answer once the server listens. `busy` or `denied` if the name is taken; `io`.
Result<int> run_gate(const std::string& name, const std::string& server,
                     const GatePatience& patience = {});

/// Copies bytes between `in`, `out` and the gate of that name, until one of them ends. `missing` if
/// no gate listens there, `denied` if another user does.
Result<void> copy_to_gate(const std::string& name, int in, int out);

/// The same, as soon as `find_name` has a name and a gate of that name listens.
Result<void> join_gate(const std::function<std::optional<std::string>()>& find_name, int in,
                       int out);

} // namespace gpuq::remote
