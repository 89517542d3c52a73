// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/timestamp.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

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

class LocalTime : public testing::Test {
protected:
    LocalTime() { set("Europe/Paris"); }
    ~LocalTime() override { set("UTC"); }
    static void set(const char* zone)
    {
        ::setenv("TZ", zone, 1);
        ::tzset();
    }
    static std::string utc(std::string_view text)
    {
        const auto time = time_from_local(text);
        return time ? to_iso8601(*time).substr(0, 19) : "none";
    }
};

TEST_F(LocalTime, IsThatOfTheClock)
{
    EXPECT_EQ(utc("2026-12-24"), "2026-12-23T23:00:00");
    EXPECT_EQ(utc("2026-12-24T18:00"), "2026-12-24T17:00:00");
    EXPECT_EQ(utc("2026-07-24T18:00:30"), "2026-07-24T16:00:30");
    EXPECT_EQ(utc("2028-02-29"), "2028-02-28T23:00:00");
    EXPECT_EQ(utc("1969-12-31T23:00:00"), "1969-12-31T22:00:00");
}

TEST_F(LocalTime, NeedsADateThatExists)
{
    for (const char* const text :
         {"2027-02-31T10:00", "2027-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-12-24x",
          "2026-12-24T24:00", "2026-12-24T10:60", "2027-03-28T10:00:60", "24.12.2026", ""}) {
        EXPECT_EQ(utc(text), "none") << text;
    }
}

TEST_F(LocalTime, InASkippedHourIsItsEnd)
{
    EXPECT_EQ(utc("2027-03-28T01:59:59"), "2027-03-28T00:59:59");
    for (const char* const skipped : {"2027-03-28T02:00", "2027-03-28T02:30", "2027-03-28T02:59"}) {
        EXPECT_EQ(utc(skipped), "2027-03-28T01:00:00") << skipped;
    }
    EXPECT_EQ(utc("2027-03-28T03:00"), "2027-03-28T01:00:00");
    set("America/Sao_Paulo"); // its days began at 01:00 then
    EXPECT_EQ(utc("2018-11-04"), "2018-11-04T03:00:00");
}

} // namespace
} // namespace gpuq
