// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/heartbeat.h"

#include "fakes/now.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

TEST(Heartbeat, IsOneLineOfFixedLength)
{
    const Heartbeat beat{k_now, JobId{42}, 99, 1234567890123, 7};
    const std::string line = to_line(beat);
    EXPECT_EQ(line.size(), k_heartbeat_size);
    EXPECT_TRUE(line.starts_with("1795000000 42 99 1234567890123 7 "));
    EXPECT_EQ(line.back(), '\n');
    EXPECT_EQ(parse_heartbeat(line), beat);
    const Heartbeat largest{k_now, JobId{UINT32_MAX}, INT32_MAX, UINT64_MAX, UINT64_MAX};
    EXPECT_EQ(to_line(largest).size(), k_heartbeat_size);
    EXPECT_EQ(parse_heartbeat(to_line(largest)), largest);
}

TEST(Heartbeat, IsNothingInForeignText)
{
    for (const char* text : {"", "1800000000", "1800000000 42 1 2 ", "x 1 2 3 4 ",
                             "1800000000 -1 2 3 4 ", "1 4294967296 0 0 0 ", "1 2 2147483648 0 0 ",
                             "99999999999999 1 2 3 4 ", "1800000000 42 1 2 3", "\0\0\0\0"}) {
        EXPECT_FALSE(parse_heartbeat(text)) << text;
    }
}

TEST(Heartbeat, StaysFreshForFifteenSeconds)
{
    const Heartbeat beat{k_now, JobId{1}, 2, 0, 0};
    EXPECT_TRUE(is_fresh(beat, k_now + 15s));
    EXPECT_FALSE(is_fresh(beat, k_now + 16s));
    EXPECT_TRUE(is_fresh(beat, k_now - 5min)) << "the node's clock is ahead";
    EXPECT_FALSE(is_fresh(beat, k_now - 5min - 1s));
}

} // namespace
} // namespace gpuq
