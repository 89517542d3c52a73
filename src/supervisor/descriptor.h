// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"

#include <string>

namespace gpuq::supervisor {

void set_nonblocking(int fd);

/// The text for errno, thread-safe.
std::string error_text(int error);

} // namespace gpuq::supervisor
