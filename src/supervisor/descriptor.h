// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <string>
#include <string_view>
#include <utility>

namespace gpuq::supervisor {

struct Pipe {
    Descriptor read, write;
};

/// Both ends are closed on exec. `io` when there are no descriptors left.
Result<Pipe> make_pipe();

void set_nonblocking(int fd);

/// Writes all of it to a blocking descriptor; false when that failed.
bool write_all(int fd, std::string_view bytes);

/// The text for errno, thread-safe.
std::string error_text(int error);

} // namespace gpuq::supervisor
