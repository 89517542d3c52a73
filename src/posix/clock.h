// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/clock.h"

namespace gpuq {

/// The system clocks.
class SystemClock : public Clock {
public:
    Time now() override;
    std::chrono::steady_clock::time_point steady() override;
};

} // namespace gpuq
