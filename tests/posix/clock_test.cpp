// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/clock.h"

#include "posix/random.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

namespace gpuq {
namespace {

TEST(SystemClock, TellsTheTimeOfThisMachine)
{
    SystemClock clock;
    const std::time_t before = std::time(nullptr);
    const Time now = clock.now();
    EXPECT_GE(now, Time(std::chrono::seconds(before)));
    EXPECT_LE(now, Time(std::chrono::seconds(std::time(nullptr) + 1)));
    const auto first = clock.steady();
    EXPECT_LE(first, clock.steady());
}

TEST(RandomBytes, AreNotTheSameTwice)
{
    EXPECT_NE(random_bytes(), random_bytes());
}

} // namespace
} // namespace gpuq
