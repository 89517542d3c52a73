// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/clock.h"

#include "posix/random.h"

#include <gtest/gtest.h>

#include <chrono>

namespace gpuq {
namespace {

TEST(SystemClock, TellsTheTimeOfThisMachine)
{
    SystemClock clock;
    // time() could be a tick behind.
    const auto before = std::chrono::system_clock::now();
    const Time now = clock.now();
    EXPECT_GE(now, std::chrono::floor<Time::duration>(before));
    EXPECT_LE(now, std::chrono::system_clock::now());
    const auto first = clock.steady();
    EXPECT_LE(first, clock.steady());
}

TEST(RandomBytes, AreNotTheSameTwice)
{
    EXPECT_NE(random_bytes(), random_bytes());
}

} // namespace
} // namespace gpuq
