// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/small_machine.h"

#include <algorithm>

namespace gpuq::sim::testing {
namespace {

using Starts = std::vector<std::int64_t>;

TEST(Simulate, StartsAtOnceWhatFits)
{
    const Course course = course_of(one_partition(1, 4), {job(1, 0s, 100s, 2), job(2, 5s, 50s, 2)});
    EXPECT_EQ(starts(course), (Starts{0, 5}));
    EXPECT_EQ(course.outcomes[1].end, 55s);
    EXPECT_EQ(course.outcomes[1].ending, Ending::completed);
}

TEST(Simulate, KeepsTheOrderOfSubmission)
{
    const Course course = course_of(
        one_partition(1, 1), {job(1, 0s, 100s, 1), job(2, 1s, 100s, 1), job(3, 2s, 100s, 1)});
    EXPECT_EQ(starts(course), (Starts{0, 100, 200}));
}

TEST(Simulate, BackfillsAJobThatEndsBeforeTheHeadCanStart)
{
    // The head needs the whole node at 1000 s; the third ends before, the fourth does not.
    const Machine machine = one_partition(1, 4);
    const Course course = course_of(machine, {job(1, 0s, 1000s, 3), job(2, 10s, 500s, 4),
                                              job(3, 20s, 600s, 1), job(4, 700s, 600s, 1)});
    EXPECT_EQ(course.outcomes[1].start, 1000s);
    EXPECT_LE(course.outcomes[2].start, 60s);
    EXPECT_EQ(course.outcomes[3].start, 1500s);
}

TEST(Simulate, WithoutBackfillNobodyOvertakes)
{
    Machine machine = one_partition(1, 4);
    machine.settings.backfill.on = false;
    const Course course =
        course_of(machine, {job(1, 0s, 1000s, 3), job(2, 10s, 500s, 4), job(3, 20s, 60s, 1)});
    EXPECT_EQ(starts(course), (Starts{0, 1000, 1500}));
}

TEST(Simulate, BooksForEveryWaitingJobAndNotOnlyTheHead)
{
    // Two nodes, each busy for 1000 s with a GPU to spare. Two jobs wait for a whole node each: a
    // third may not delay the second of them either.
    const Machine machine = one_partition(2, 4);
    const Course course =
        course_of(machine, {job(1, 0s, 1000s, 3), job(2, 0s, 2000s, 3), job(3, 1s, 9000s, 4),
                            job(4, 2s, 5000s, 4), job(5, 3s, 4000s, 1)});
    EXPECT_EQ(course.outcomes[2].start, 1000s);
    EXPECT_EQ(course.outcomes[3].start, 2000s);
    EXPECT_EQ(course.outcomes[4].start, 7000s);
}

TEST(Simulate, BooksByTheLimitThatIsSaidNotByTheTruth)
{
    Machine machine = one_partition(1, 2);
    Job first = job(1, 0s, 100s, 1);
    first.limit = 10h;
    // Both GPUs are wanted next; the third would be through long before, but says two days.
    Job third = job(3, 2s, 60s, 1);
    third.limit = 48h;
    const Course course = course_of(machine, {first, job(2, 1s, 100s, 2), third});
    EXPECT_EQ(starts(course), (Starts{0, 100, 200}));
}

TEST(Simulate, KillsAtTheLimitWhenTheLoopComesRound)
{
    Machine machine = one_partition(1, 1);
    Job runaway = job(1, 5s, 1000s, 1);
    runaway.limit = 60s;
    const Course course = course_of(machine, {runaway});
    EXPECT_EQ(course.outcomes[0].ending, Ending::timed_out);
    EXPECT_EQ(course.outcomes[0].end, 90s);
}

TEST(Simulate, GoesOnAsFurtherLinks)
{
    Machine machine = one_partition(1, 1);
    Job run = job(1, 0s, 1000s, 1);
    run.limit = 300s;
    run.chain = Chain{.limit = 500s, .partitions = {0}, .gap = 10s, .lost = 20s};
    const Course course = course_of(machine, {run});
    // 300 done, 20 lost; 500 done, 20 lost; 240 left.
    EXPECT_EQ(course.outcomes[0].links, 3);
    EXPECT_EQ(course.outcomes[0].end, 300s + 10s + 500s + 10s + 240s);
    EXPECT_EQ(course.outcomes[0].ending, Ending::completed);
    ASSERT_EQ(course.pieces.size(), 3U);
    EXPECT_EQ(course.pieces[1].eligible, 310s);
}

TEST(Simulate, AsksForNoMoreThanIsLeft)
{
    Machine machine = one_partition(1, 1);
    machine.reservations = {{.nodes = {0}, .start = 1600s, .end = 9000s}};
    Job run = job(1, 0s, 1000s, 1);
    run.limit = 300s;
    run.chain = Chain{.limit = 5000s, .asked = 1500s, .partitions = {0}};
    // 1200 s are left: they fit before the reservation, 5000 s do not.
    EXPECT_EQ(course_of(machine, {run}).outcomes[0].end, 1000s);
    run.chain->asked = 0s;
    EXPECT_GT(course_of(machine, {run}).outcomes[0].end, 9000s);
}

TEST(Simulate, RefusesWhatNoPartitionMayRun)
{
    Job huge = job(1, 0s, 100s, 9);
    Job endless = job(2, 0s, 100s, 1);
    endless.limit = 49h;
    const Course course = course_of(one_partition(2, 4), {huge, endless, job(3, 0s, 100s, 1)});
    EXPECT_EQ(course.outcomes[0].ending, Ending::refused);
    EXPECT_EQ(course.outcomes[1].ending, Ending::refused);
    EXPECT_EQ(course.outcomes[2].ending, Ending::completed);
}

TEST(Simulate, SpreadsAJobOverAsFewNodesAsHoldIt)
{
    const Course course = course_of(one_partition(3, 4), {job(1, 0s, 100s, 8), job(2, 0s, 9s, 4)});
    EXPECT_EQ(course.pieces[0].nodes, (std::vector<int>{2}));
    EXPECT_EQ(course.pieces[1].nodes, (std::vector<int>{0, 1}));
    EXPECT_EQ(course.pieces[1].gpus, (std::vector<int>{4, 4}));
}

TEST(Simulate, ReadsTheModelAskedFor)
{
    Machine machine = one_partition(2, 1);
    machine.nodes[0].model = "k80";
    machine.nodes[1].model = "v100";
    Job wants = job(1, 0s, 100s, 1);
    wants.model = "v100";
    const Course course = course_of(machine, {wants, job(2, 0s, 100s, 1)});
    EXPECT_EQ(course.pieces[0].nodes, (std::vector<int>{1}));
    EXPECT_EQ(course.pieces[1].nodes, (std::vector<int>{0}));
}

TEST(Simulate, IsTheSameEveryTime)
{
    const Machine machine = one_partition(4, 4);
    const std::vector<Job> jobs = busy_week(7, 400, 8);
    EXPECT_EQ(course_of(machine, jobs), course_of(machine, jobs));
}

TEST(Simulate, DoesNotCareInWhichOrderJobsAreListed)
{
    const Machine machine = one_partition(4, 4);
    std::vector<Job> jobs = busy_week(8, 300, 8);
    const Course straight = course_of(machine, jobs);
    std::reverse(jobs.begin(), jobs.end());
    Course turned = course_of(machine, jobs);
    std::reverse(turned.outcomes.begin(), turned.outcomes.end());
    EXPECT_EQ(straight.outcomes, turned.outcomes);
}

TEST(Simulate, LeavesThosePrioritiesAloneThatCanNotHaveChanged)
{
    Machine machine = one_partition(1, 1);
    machine.settings.weights = {.age = 1000, .fair_share = 10000, .max_age = 1h};
    machine.settings.weights.calc_period = 60s;
    std::vector<Job> jobs;
    for (std::uint64_t id = 1; id <= 100; ++id) {
        jobs.push_back(job(id, 0s, 10h, 1));
    }
    // 60,000 calculations over fifty jobs on average; they get older in the first sixty.
    EXPECT_LE(course_of(machine, jobs).effort.priorities, 61 * 100);
}

TEST(Simulate, SaysWhatMakesNoSense)
{
    Machine machine = one_partition(1, 1);
    machine.partitions[0].nodes = {5};
    EXPECT_EQ(
        simulate(machine, {}).error().text,
        "the simulated machine makes no sense: partition main names a node that is not there");
    Job lost = job(3, 0s, 1s, 1);
    lost.partitions = {1};
    EXPECT_EQ(simulate(one_partition(1, 1), {lost}).error().text,
              "job 3 has a partition that is not there");
}

} // namespace
} // namespace gpuq::sim::testing
