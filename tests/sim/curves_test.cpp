// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/curves.h"

#include "sim/small_machine.h"

#include <gmock/gmock.h>

namespace gpuq::sim::small {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(Curves, AverageWhatWaitsAndWhatRunsInEachPart)
{
    // Two GPUs: the first run has both from 0 to 150, the second waits that long for one of them.
    const Machine machine = one_partition(1, 2);
    const std::vector<Job> jobs = {job(1, 0s, 150s, 2), job(2, 50s, 100s, 1)};
    const Course course = course_of(machine, jobs);
    ASSERT_THAT(starts(course), ElementsAre(0, 150));
    const Curves drawn = curves(machine, jobs, course, 230s, 100s);
    EXPECT_THAT(drawn.waiting, ElementsAre(DoubleEq(0.5), DoubleEq(0.5), DoubleEq(0)));
    EXPECT_THAT(drawn.used, ElementsAre(DoubleEq(2), DoubleEq(1.5), DoubleEq(1)));
    EXPECT_THAT(drawn.short_waits, ElementsAre(0s, 100s));
    EXPECT_EQ(drawn.gpus, 2);
}

TEST(Curves, WhatNeverStartsWaitsToTheEnd)
{
    Machine machine = one_partition(1, 2);
    machine.qos = {{.name = "one", .gpus_per_user = 1}};
    machine.partitions[0].qos = 0;
    const std::vector<Job> jobs = {job(1, 100s, 10s, 2)};
    const Course course = course_of(machine, jobs);
    ASSERT_EQ(course.outcomes[0].ending, Ending::waiting);
    const Curves drawn = curves(machine, jobs, course, 300s, 100s);
    EXPECT_THAT(drawn.waiting, ElementsAre(DoubleEq(0), DoubleEq(1), DoubleEq(1)));
    EXPECT_TRUE(drawn.short_waits.empty());
}

TEST(Curves, OfNothingAreEmpty)
{
    const Machine machine = one_partition(1, 1);
    const Curves drawn = curves(machine, {}, course_of(machine, {}), 0s, 10min);
    EXPECT_TRUE(drawn.waiting.empty());
    EXPECT_DOUBLE_EQ(share_within(drawn.short_waits, 0s), 1);
}

TEST(Curves, ShareCountsThoseThatWaitedJustSoLong)
{
    const std::vector<Seconds> waits = {0s, 0s, 10s, 20s};
    EXPECT_DOUBLE_EQ(share_within(waits, 9s), 0.5);
    EXPECT_DOUBLE_EQ(share_within(waits, 10s), 0.75);
    EXPECT_DOUBLE_EQ(share_within(waits, 20s), 1);
}

TEST(Curves, HaveAHundredPartsAtMost)
{
    EXPECT_EQ(part_for(0s), 10min);
    EXPECT_EQ(part_for(14 * 24h), 6h);
    EXPECT_EQ(part_for(92 * 24h), 24h);
    EXPECT_EQ(part_for(3 * 365 * 24h), 2 * 7 * 24h);
}

} // namespace
} // namespace gpuq::sim::small
