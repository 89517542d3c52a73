// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <chrono>

namespace gpuq {

class Clock {
public:
    virtual ~Clock() = default;
    virtual Time now() = 0;
    /// Monotonic, for durations.
    virtual std::chrono::steady_clock::time_point steady() = 0;
};

} // namespace gpuq
