// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/walltime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string reason_against(std::string_view text)
{
    const auto walltime = parse_walltime(text);
    return walltime ? "accepted: " + to_text(*walltime) : walltime.error().text;
}

TEST(Walltime, ReadsWhatPeopleType)
{
    EXPECT_EQ(*parse_walltime("90"), 90min);
    EXPECT_EQ(*parse_walltime("2h"), 2h);
    EXPECT_EQ(*parse_walltime("90m"), 90min);
    EXPECT_EQ(*parse_walltime("7d"), 7 * 24h);
    EXPECT_EQ(*parse_walltime("1h30m"), 90min);
    EXPECT_EQ(*parse_walltime("1d12h"), 36h);
    EXPECT_EQ(*parse_walltime("05"), 5min);
}

TEST(Walltime, ReadsSlurmsForms)
{
    EXPECT_EQ(*parse_walltime("1:30:00"), 90min);
    EXPECT_EQ(*parse_walltime("0:90:00"), 90min);
    EXPECT_EQ(*parse_walltime("1-12"), 36h);
    EXPECT_EQ(*parse_walltime("1-12:30"), 36h + 30min);
    EXPECT_EQ(*parse_walltime("1-12:30:00"), 36h + 30min);
    EXPECT_EQ(*parse_walltime("0-2"), 2h);
}

TEST(Walltime, RoundsUpToWholeMinutes)
{
    EXPECT_EQ(*parse_walltime("0:00:01"), 1min);
    EXPECT_EQ(*parse_walltime("61s"), 2min);
    EXPECT_EQ(*parse_walltime("60s"), 1min);
    EXPECT_EQ(*parse_duration("61s"), 61s);
}

TEST(Walltime, NamesBothReadingsOfTwoNumbers)
{
    EXPECT_EQ(
        reason_against("2:30"),
        "'2:30' is not a time: it may be 2 min 30 s (Slurm's reading: write 0:2:30) or 2 h 30 "
        "min (write 2:30:00 or 2h30m)");
    EXPECT_EQ(*parse_walltime("0:2:30"), 3min); // the suggested spelling is accepted
    EXPECT_EQ(*parse_walltime("2:30:00"), *parse_walltime("2h30m"));
}

TEST(Walltime, SaysWhatIsWrong)
{
    EXPECT_EQ(reason_against("2h30"), "'2h30' is not a time: add a unit to 30, as in 2h30m");
    EXPECT_THAT(reason_against("1:2:3:4"), HasSubstr("too many colons"));
    EXPECT_THAT(reason_against("0"), HasSubstr("it is zero"));
    EXPECT_THAT(reason_against("0:00:00"), HasSubstr("it is zero"));
    EXPECT_THAT(reason_against("-1"), HasSubstr("negative"));
    EXPECT_THAT(reason_against("1000000000"), HasSubstr("longer than ten years"));
    EXPECT_THAT(reason_against("99999999999999999999999"), HasSubstr("longer than ten years"));
    EXPECT_THAT(reason_against("9999d9999h"), HasSubstr("longer than ten years"));
    for (const char* text :
         {"",     "1e9",   "NaN",  "inf",       "UNLIMITED", "1.5h", "1,5h", "2H", "h",
          "2h2h", "30m2h", " 2h",  "2h ",       "+2h",       "0x10", ":",    "1:", ":1:1",
          "1-",   "1--2",  "1-2h", "1-1:1:1:1", "2 h",       "2:3x", "٣"}) {
        EXPECT_THAT(reason_against(text), HasSubstr("is not a time")) << text;
    }
}

TEST(Walltime, IsShownToPeopleAndToSlurm)
{
    EXPECT_EQ(to_text(2h), "2 h");
    EXPECT_EQ(to_text(45min), "45 min");
    EXPECT_EQ(to_text(0min), "0 min");
    EXPECT_EQ(to_text(36h), "1 day 12 h");
    EXPECT_EQ(to_text(48h + 1min), "2 days 1 min");
    EXPECT_EQ(slurm_time(90min), "0-01:30:00");
    EXPECT_EQ(slurm_time(36h), "1-12:00:00");
    for (const auto length : {1min, 59min, 61min, 1439min, 1441min, 100000min}) {
        EXPECT_EQ(*parse_walltime(slurm_time(length)), length);
    }
}

} // namespace
} // namespace gpuq
