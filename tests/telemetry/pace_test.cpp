// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/pace.h"

#include <gtest/gtest.h>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;

Series of(std::initializer_list<std::pair<std::int64_t, std::chrono::seconds>> points)
{
    Series series;
    for (const auto& [step, at] : points) {
        series.add({step, Time(at), 1});
    }
    return series;
}

TEST(Pace, IsThatSinceTheProgramBeganAgain)
{
    EXPECT_EQ(steps_per_second(of({{0, 0s}, {100, 10s}, {200, 20s}})), 10.0);
    EXPECT_EQ(steps_per_second(of({{0, 0s}, {900, 10s}, {500, 1000s}, {510, 1010s}})), 1.0);
    EXPECT_EQ(steps_per_second(of({{0, 0s}})), std::nullopt);
    EXPECT_EQ(steps_per_second(of({{0, 0s}, {10, 0s}})), std::nullopt);
    EXPECT_EQ(steps_per_second(of({{5, 0s}, {5, 10s}})), std::nullopt);
    EXPECT_EQ(steps_per_second(of({{0, 50s}, {10, 0s}})), std::nullopt) << "a clock that goes back";
    EXPECT_EQ(steps_per_second({}), std::nullopt);
}

TEST(Pace, KnowsTheUsualInterval)
{
    EXPECT_EQ(usual_interval(of({{0, 0s}, {1, 10s}, {2, 20s}, {3, 500s}})), 10s);
    EXPECT_EQ(usual_interval(of({{0, 0s}, {1, 10s}})), std::nullopt);
}

TEST(Pace, CallsAStallWhatIsNoPause)
{
    EXPECT_FALSE(is_stall(4min, 1s));
    EXPECT_TRUE(is_stall(6min, 1s));
    EXPECT_FALSE(is_stall(10min, 60s));
    EXPECT_TRUE(is_stall(21min, 60s));
}

} // namespace
} // namespace gpuq::telemetry
