// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// `--forward PORT[:[HOST:]PORT]`: a port of this machine, and what it leads to.
struct Forward {
    std::uint16_t port = 0;
    std::string to; ///< HOST:PORT, as seen from the run's node
    bool operator==(const Forward&) const = default;
};
/// `usage`.
Result<Forward> forward_from(std::string_view text);

/// HOST:PORT of nothing but letters, digits and `._-`: no word of it is an option or another word.
bool is_destination(std::string_view text);

/// Sockets that listen at the port on 127.0.0.1 and, where there is one, on ::1. `usage` when
/// somebody else has it, `io`.
Result<std::vector<Descriptor>> listen_here(std::uint16_t port);

} // namespace gpuq::remote
