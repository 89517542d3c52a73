// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/hours.h"

#include "core/timestamp.h"
#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpuq::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// The time zone of this process during a test.
class HoursIn {
public:
    explicit HoursIn(const char* zone) { set(zone); }
    ~HoursIn() { set("UTC0"); }
    HoursIn(const HoursIn&) = delete;
    HoursIn& operator=(const HoursIn&) = delete;

private:
    static void set(const char* zone)
    {
        ::setenv("TZ", zone, 1);
        ::tzset();
    }
};

constexpr const char* k_paris_zone = "CET-1CEST,M3.5.0,M10.5.0/3";

policy::Policy policy_with_hours(const std::string& pool, const std::string& calendar)
{
    const auto reading =
        policy::read_policy("version: 1\npools: {all: {nodes: n1, gpus: 4" + pool +
                                "}}\nqueues:\n  q:\n    time: 2h\n    pools: all\n" + calendar,
                            "p");
    EXPECT_TRUE(reading) << (reading ? "" : reading.error().text);
    return reading ? reading->policy : policy::Policy{};
}

policy::Policy nightly_policy()
{
    return policy_with_hours("",
                             "    calendar:\n      - {when: {days: mon-fri, from: \"20:00\", to: "
                             "\"08:00\"}, time: 24h}\n");
}

TraceClock clock_since(const std::string& local)
{
    return TraceClock::since(*time_from_local(local));
}

std::vector<std::string> wall_times(const std::vector<HoursChange>& changes)
{
    std::vector<std::string> texts;
    for (const HoursChange& change : changes) {
        texts.push_back(policy::as_written(change.wall));
    }
    return texts;
}

std::vector<std::int64_t> whole_hours(const std::vector<HoursChange>& changes)
{
    std::vector<std::int64_t> result;
    for (const HoursChange& change : changes) {
        result.push_back(change.time / 1h);
    }
    return result;
}

TEST(Hours, OfAPolicyWithoutAnyDoNotChange)
{
    EXPECT_THAT(changes_of_hours(policy_with_hours("", ""), {}, 1000h), IsEmpty());
}

TEST(Hours, ChangeAtTheTimesOfTheCalendar)
{
    const TraceClock clock = TraceClock::on_the_wall(
        LocalSeconds(policy::local_time_of("2026-11-06T17:30"))); // a Friday
    const auto changes = changes_of_hours(nightly_policy(), clock, 90h);
    EXPECT_THAT(wall_times(changes),
                ElementsAre("2026-11-06T17:30", "2026-11-06T20:00", "2026-11-07T08:00",
                            "2026-11-09T20:00", "2026-11-10T08:00"));
    EXPECT_EQ(changes[1].time, 2h + 30min);
    EXPECT_EQ(changes[0].open, "");
    EXPECT_NE(changes[1].open, "");
}

TEST(Hours, WithoutADateBeginOnAMonday)
{
    EXPECT_THAT(wall_times(changes_of_hours(nightly_policy(), {}, 21h)),
                ElementsAre("2024-01-01T00:00", "2024-01-01T20:00"));
}

TEST(Hours, OfANightAreShorterWhenTheClockIsPutForward)
{
    const HoursIn paris(k_paris_zone);
    const auto daily = policy_with_hours(
        "", "    calendar:\n      - {when: {from: \"20:00\", to: \"08:00\"}, time: 24h}\n");
    // 2026-03-29, 02:00 becomes 03:00.
    EXPECT_THAT(whole_hours(changes_of_hours(daily, clock_since("2026-03-28T12:00"), 50h)),
                ElementsAre(0, 8, 19, 31, 43));
    // 2026-10-25, 03:00 becomes 02:00.
    EXPECT_THAT(whole_hours(changes_of_hours(daily, clock_since("2026-10-24T12:00"), 50h)),
                ElementsAre(0, 8, 21, 33, 45));
    // The times of sacct are those on the wall.
    EXPECT_THAT(
        whole_hours(changes_of_hours(
            daily, TraceClock::on_the_wall(LocalSeconds(policy::local_time_of("2026-03-28T12:00"))),
            50h)),
        ElementsAre(0, 8, 20, 32, 44));
}

TEST(Hours, InTheSkippedHourBeginAtItsEndAndInTheRepeatedOneOccurTwice)
{
    const HoursIn paris(k_paris_zone);
    const auto early = policy_with_hours(
        "", "    calendar:\n      - {when: {from: \"02:15\", to: \"02:45\"}, time: 24h}\n");
    EXPECT_THAT(wall_times(changes_of_hours(early, clock_since("2026-03-29T00:00"), 20h)),
                ElementsAre("2026-03-29T00:00"));
    const auto twice = changes_of_hours(early, clock_since("2026-10-25T00:00"), 20h);
    EXPECT_THAT(wall_times(twice),
                ElementsAre("2026-10-25T00:00", "2026-10-25T02:15", "2026-10-25T02:45",
                            "2026-10-25T02:15", "2026-10-25T02:45"));
    EXPECT_EQ(twice[3].time - twice[1].time, 1h);
}

TEST(Hours, KnowLeapDays)
{
    const auto clock =
        TraceClock::on_the_wall(LocalSeconds(policy::local_time_of("2028-02-28T12:00")));
    EXPECT_THAT(wall_times(changes_of_hours(nightly_policy(), clock, 44h)),
                ElementsAre("2028-02-28T12:00", "2028-02-28T20:00", "2028-02-29T08:00",
                            "2028-02-29T20:00", "2028-03-01T08:00"));
}

/// The definition: minute by minute.
std::vector<HoursChange> minute_by_minute(const policy::Policy& policy, const TraceClock& clock,
                                          Seconds end)
{
    std::vector<HoursChange> changes;
    const Seconds first = -(clock.at(0s).time_since_epoch() % 60s);
    for (Seconds time = first; time <= end; time += 60s) {
        const Seconds moment = std::max(time, 0s);
        const auto wall = std::chrono::floor<std::chrono::minutes>(clock.at(moment));
        const std::string open = *policy::open_hours(policy, wall);
        if (changes.empty() || changes.back().open != open) {
            changes.push_back({moment, wall, open});
        }
    }
    return changes;
}

TEST(Hours, AreThoseOfEachMinute)
{
    const auto several = policy_with_hours(
        ", when: [{days: mon-sat, from: \"07:00\", to: \"01:30\"}, {days: sun}]",
        "    calendar:\n"
        "      - {when: {days: [tue, sat], from: \"02:10\", to: \"02:50\"}, time: 4h}\n"
        "      - {when: {days: [sat, sun]}, time: 24h}\n"
        "      - {when: {days: daily, from: \"23:00\", to: \"03:00\"}, time: 5h}\n");
    const auto weekly = policy_with_hours(
        "",
        "    calendar:\n      - {when: {days: wed, from: \"10:00\", to: \"12:00\"}, time: 4h}\n");
    for (const char* zone : {k_paris_zone, "UTC", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"}) {
        const HoursIn there(zone);
        for (const char* begin : {"2026-03-20T11:22:33", "2026-10-01T00:00:00"}) {
            for (const auto& policy : {several, weekly}) {
                const TraceClock clock = clock_since(begin);
                EXPECT_EQ(changes_of_hours(policy, clock, 40 * 24h),
                          minute_by_minute(policy, clock, 40 * 24h))
                    << zone << " " << begin;
            }
        }
    }
}

} // namespace
} // namespace gpuq::sim
