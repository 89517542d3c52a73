// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"

#include <string>

namespace gpuq::supervisor {

void set_nonblocking(int fd);

/// Thread-safe text for an errno value.
std::string error_text(int error);

} // namespace gpuq::supervisor
