// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// `--forward PORT[:[HOST:]PORT]`: a local port and its destination.
struct Forward {
    std::uint16_t port = 0;
    std::string to; ///< HOST:PORT, as seen from the run's node
    bool operator==(const Forward&) const = default;
};
/// Parses the option value; `usage`.
Result<Forward> forward_from(std::string_view text);

/// True for HOST:PORT of letters, digits and `._-` only, which can be neither an option nor contain
/// several arguments.
bool is_destination(std::string_view text);

/// Sockets listening on the port of 127.0.0.1 and, if available, of ::1. `usage` when the port is
/// in use; `io`.
Result<std::vector<Descriptor>> listen_here(std::uint16_t port);

} // namespace gpuq::remote
