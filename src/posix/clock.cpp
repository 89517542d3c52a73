// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/clock.h"

namespace gpuq {

Time SystemClock::now()
{
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now());
}

std::chrono::steady_clock::time_point SystemClock::steady()
{
    return std::chrono::steady_clock::now();
}

} // namespace gpuq
