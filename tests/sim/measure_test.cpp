// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/measure.h"

#include "sim/small_machine.h"

namespace gpuq::sim::small {
namespace {

TEST(Measure, CountsWaitsByClassAndUser)
{
    const Machine machine = one_partition(1, 1);
    const std::vector<Job> jobs = {job(1, 0s, 3h, 1), job(2, 10s, 100s, 1, "bob"),
                                   job(3, 20s, 100s, 1), job(4, 30s, 100s, 9)};
    const Measures measures = measure(machine, jobs, course_of(machine, jobs));
    EXPECT_EQ(measures.all.runs, 4U);
    EXPECT_EQ(measures.all.never, 1U);
    EXPECT_EQ(measures.short_runs.p50, 3h - 10s);
    EXPECT_EQ(measures.short_runs.p95, 3h + 100s - 20s);
    EXPECT_EQ(measures.short_runs.max, 3h + 80s);
    EXPECT_DOUBLE_EQ(measures.short_runs.within_target.value(), 0);
    EXPECT_EQ(measures.long_runs.max, 0s);
    ASSERT_EQ(measures.users.size(), 2U);
    EXPECT_EQ(measures.users[1].name, "bob");
    EXPECT_EQ(measures.users[1].waits.max, 3h - 10s);
    ASSERT_EQ(measures.partitions.size(), 1U);
    EXPECT_EQ(measures.partitions[0].name, "main");
}

TEST(Measure, TellsIdleGpusThatSomebodyWaitsForFromThoseNobodyMayUse)
{
    // Two nodes, each in its own partition: one is busy with another job waiting, the other is
    // idle.
    Machine machine = one_partition(2, 1);
    machine.partitions = {{.name = "busy", .nodes = {0}}, {.name = "idle", .nodes = {1}}};
    std::vector<Job> jobs = {job(1, 0s, 100s, 1), job(2, 0s, 100s, 1), job(3, 400s, 1s, 1)};
    Measures measures = measure(machine, jobs, course_of(machine, jobs));
    EXPECT_EQ(measures.span, 400s);
    EXPECT_DOUBLE_EQ(measures.use, 200.0 / 800);
    EXPECT_DOUBLE_EQ(measures.idle_while_waiting, 100.0 / 800);
    EXPECT_DOUBLE_EQ(measures.idle_while_allowed, 0);
    jobs[1].partitions = {0, 1};
    measures = measure(machine, jobs, course_of(machine, jobs));
    EXPECT_DOUBLE_EQ(measures.idle_while_waiting, 0); // it starts on the other node at once
}

TEST(Measure, SeesThatAWideJobCanNotUseAFreePart)
{
    const Machine machine = one_partition(1, 4);
    const std::vector<Job> jobs = {job(1, 0s, 100s, 3), job(2, 0s, 100s, 4), job(3, 300s, 1s, 1)};
    const Measures measures = measure(machine, jobs, course_of(machine, jobs));
    EXPECT_DOUBLE_EQ(measures.idle_while_waiting, 100.0 / 1200);
    EXPECT_DOUBLE_EQ(measures.idle_while_allowed, 0);
}

TEST(Measure, CountsRunsThatAreStoppedAtTheirLimit)
{
    const Machine machine = one_partition(1, 1);
    std::vector<Job> jobs = {job(1, 0s, 3h, 1), job(2, 0s, 100s, 1)};
    jobs[0].limit = 1h;
    EXPECT_EQ(measure(machine, jobs, course_of(machine, jobs)).stopped, 1U);
}

TEST(Measure, NothingIsNothing)
{
    const Machine machine = one_partition(1, 1);
    const Measures measures = measure(machine, {}, course_of(machine, {}));
    EXPECT_EQ(measures.all, Waits{});
    EXPECT_EQ(measures.all.within_target, std::nullopt) << "no promise kept";
    EXPECT_DOUBLE_EQ(measures.use, 0);
    EXPECT_DOUBLE_EQ(harm(measures.all, measures.all), 1);
}

} // namespace
} // namespace gpuq::sim::small
