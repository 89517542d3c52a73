// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/timestamp.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

TEST(Timestamp, IsUtcToTheMicrosecond)
{
    const Time time{std::chrono::microseconds{1'795'180'318'042'007}};
    EXPECT_EQ(to_iso8601(time), "2026-11-20T13:11:58.042007Z");
    EXPECT_EQ(time_from_iso8601("2026-11-20T13:11:58.042007Z"), time);
    EXPECT_EQ(to_iso8601(Time{std::chrono::microseconds{-1}}), "1969-12-31T23:59:59.999999Z");
}

TEST(Timestamp, ReadsFewerDigits)
{
    const Time time{std::chrono::seconds{1'795'180'318}};
    EXPECT_EQ(time_from_iso8601("2026-11-20T13:11:58Z"), time);
    EXPECT_EQ(time_from_iso8601("2026-11-20T13:11:58.5Z"), time + std::chrono::milliseconds{500});
}

TEST(Timestamp, RefusesWhatIsNoTime)
{
    for (const char* text :
         {"", "Z", "2026-11-20", "2026-11-20T13:11:58", "2026-13-20T13:11:58Z",
          "2026-02-30T13:11:58Z", "2026-11-20T24:11:58Z", "2026-11-20T13:11:58.Z",
          "2026-11-20T13:11:58.1234567Z", "2026-11-20 13:11:58Z", "2026-11-20T13:11:58.1+02Z"}) {
        EXPECT_EQ(time_from_iso8601(text), std::nullopt) << text;
    }
}

} // namespace
} // namespace gpuq
