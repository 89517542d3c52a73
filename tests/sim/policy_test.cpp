// SPDX-License-Identifier: GPL-2.0-or-later
// Partitions, tiers, caps, preemption, reservations and fair share in small scenarios.
#include "sim/small_machine.h"

namespace gpuq::sim::small {
namespace {

/// One node with 4 GPUs in two partitions; `first` has the higher tier.
Machine two_tiers()
{
    Machine machine = one_partition(1, 4);
    machine.partitions = {{.name = "first", .nodes = {0}, .max_time = 48h, .tier = 20},
                          {.name = "second", .nodes = {0}, .max_time = 48h, .tier = 5}};
    return machine;
}

Job in(Job made, std::vector<int> partitions)
{
    made.partitions = std::move(partitions);
    return made;
}

TEST(Policy, TheHigherTierGoesFirstWhoeverCameFirst)
{
    const Course course =
        course_of(two_tiers(), {in(job(1, 0s, 100s, 4), {1}), in(job(2, 1s, 100s, 4), {1}),
                                in(job(3, 2s, 100s, 4), {0})});
    EXPECT_EQ(starts(course), (std::vector<std::int64_t>{0, 200, 100}));
}

TEST(Policy, ACapHoldsBackOneUserAndNobodyElse)
{
    Machine machine = one_partition(1, 4);
    machine.qos = {{.name = "cap", .gpus_per_user = 2}};
    machine.partitions[0].qos = 0;
    const Course course = course_of(machine, {job(1, 0s, 100s, 1), job(2, 0s, 100s, 1),
                                              job(3, 0s, 100s, 1), job(4, 1s, 100s, 1, "bob")});
    EXPECT_EQ(starts(course), (std::vector<std::int64_t>{0, 0, 100, 1}));
}

TEST(Policy, ASoftCapBindsOnlyWhileOthersWait)
{
    // first: two GPUs per user; second: any GPUs left on the same node.
    Machine machine = two_tiers();
    machine.qos = {{.name = "cap", .gpus_per_user = 2}};
    machine.partitions[0].qos = 0;
    std::vector<Job> jobs;
    for (std::uint64_t i = 0; i < 5; ++i) {
        jobs.push_back(in(job(i + 1, 0s, 100s, 1), {0, 1}));
    }
    jobs.push_back(in(job(6, 10s, 100s, 1, "bob"), {0, 1}));
    const Course course = course_of(machine, jobs);
    // Alice has all four GPUs; at 100 s her fifth job and bob's first one start.
    EXPECT_EQ(starts(course), (std::vector<std::int64_t>{0, 0, 0, 0, 100, 100}));
    EXPECT_EQ(course.outcomes[1].partition, 0);
    EXPECT_EQ(course.outcomes[2].partition, 1);
    EXPECT_EQ(course.outcomes[5].partition, 0);
}

TEST(Policy, ThePartitionsLimitHidesTheJobs)
{
    Machine machine = one_partition(1, 4);
    machine.qos = {{.name = "partition", .gpus_per_user = 4}, {.name = "own", .gpus_per_user = 1}};
    machine.partitions[0].qos = 0;
    Job first = job(1, 0s, 100s, 2);
    first.qos = 1;
    EXPECT_EQ(starts(course_of(machine, {first})), (std::vector<std::int64_t>{0}));
    machine.partitions[0].qos.reset();
    EXPECT_EQ(starts(course_of(machine, {first})), (std::vector<std::int64_t>{-1}));
}

TEST(Policy, TooManySubmittedAreRefused)
{
    Machine machine = one_partition(1, 1);
    machine.qos = {{.name = "two", .submitted_per_user = 2}};
    machine.partitions[0].qos = 0;
    const Course course = course_of(machine, {job(1, 0s, 100s, 1), job(2, 0s, 100s, 1),
                                              job(3, 0s, 100s, 1), job(4, 150s, 9s, 1)});
    EXPECT_EQ(course.outcomes[2].ending, Ending::refused);
    EXPECT_EQ(course.outcomes[3].start, 200s);
}

TEST(Policy, OverflowGoesToTheNextPartitionOnlyWhenTheFirstIsFull)
{
    Machine machine = one_partition(2, 1);
    machine.partitions = {{.name = "calib", .nodes = {0}, .tier = 20},
                          {.name = "spill", .nodes = {1}, .tier = 4}};
    const Course course =
        course_of(machine, {in(job(1, 0s, 100s, 1), {0, 1}), in(job(2, 1s, 100s, 1), {0, 1})});
    EXPECT_EQ(starts(course), (std::vector<std::int64_t>{0, 1}));
    EXPECT_EQ(course.outcomes[0].partition, 0);
    EXPECT_EQ(course.outcomes[1].partition, 1);
}

TEST(Policy, OneReservationForEachJobFreesTheOtherPartition)
{
    // The wide job fits either partition; if planned in calib, it must not block spill.
    Machine machine = one_partition(2, 4);
    machine.partitions = {{.name = "calib", .nodes = {0}, .max_time = 48h, .tier = 20},
                          {.name = "spill", .nodes = {1}, .max_time = 48h, .tier = 10}};
    const std::vector<Job> jobs = {in(job(1, 0s, 1000s, 3), {0}), in(job(2, 0s, 3000s, 3), {1}),
                                   in(job(3, 1s, 500s, 4), {0, 1}), in(job(4, 2s, 6000s, 1), {1})};
    EXPECT_GE(course_of(machine, jobs).outcomes[3].start, 1000s);
    machine.settings.backfill.one_reservation_per_job = true;
    EXPECT_LE(course_of(machine, jobs).outcomes[3].start, 60s);
}

TEST(Policy, AJobOverItsCapBooksNothing)
{
    // Alice's second job may not start while her first runs: no job waits behind it.
    Machine machine = one_partition(1, 4);
    machine.qos = {{.name = "cap", .gpus_per_user = 2}};
    machine.partitions[0].qos = 0;
    const Course course = course_of(
        machine, {job(1, 0s, 1000s, 2), job(2, 1s, 9000s, 2), job(3, 2s, 5000s, 2, "bob")});
    EXPECT_EQ(starts(course), (std::vector<std::int64_t>{0, 1000, 2}));
}

TEST(Policy, ANewJobCountsOneCpuUntilItHasBeenLookedAt)
{
    // Job 2 wants one GPU, job 3 all four. After the next calculation the size of job 3 counts, and
    // it overtakes job 2.
    Machine machine = one_partition(1, 4);
    machine.settings.weights.job_size = 1000;
    machine.settings.weights.age = 1;
    const Course course =
        course_of(machine, {job(1, 0s, 1000s, 4), job(2, 310s, 100s, 1), job(3, 601s, 100s, 4)});
    EXPECT_EQ(starts(course), (std::vector<std::int64_t>{0, 1100, 1000}));
}

Machine lending(Preempt preempt, Seconds grace)
{
    Machine machine = two_tiers();
    machine.partitions[1].preempt = preempt;
    machine.partitions[1].grace = grace;
    machine.settings.preempts = true;
    machine.settings.timing.kill_wait = 5s;
    return machine;
}

TEST(Policy, AnOwnerTakesTheNodeBackAtOnceWithoutGrace)
{
    const std::vector<Job> jobs = {in(job(1, 0s, 1000s, 4), {1}), in(job(2, 100s, 50s, 2), {0})};
    const Course course = course_of(lending(Preempt::requeue, 0s), jobs);
    EXPECT_EQ(course.outcomes[1].start, 108s); // as measured with KillWait=5
    EXPECT_EQ(course.outcomes[0].preempted, 1);
    EXPECT_EQ(course.outcomes[0].links, 2);
    EXPECT_EQ(course.pieces.back().eligible, 108s + 121s);
    EXPECT_EQ(course.outcomes[0].end, course.pieces.back().start + 1000s);
}

TEST(Policy, ARequeuedJobIsStillASubmittedOne)
{
    Machine machine = lending(Preempt::requeue, 0s);
    machine.nodes.push_back({.name = "other", .gpus = 4});
    machine.partitions.push_back({.name = "third", .nodes = {1}, .max_time = 48h, .tier = 10});
    machine.qos = {{.name = "one", .submitted_per_user = 1}};
    machine.partitions[1].qos = machine.partitions[2].qos = 0;
    const auto course = [&](Seconds second) {
        return course_of(machine,
                         {in(job(1, 0s, 1000s, 4), {1}), in(job(2, 100s, 50s, 4, "bob"), {0}),
                          in(job(3, second, 1000s, 1), {2})});
    };
    // Slurm does not check the job, which is eligible again at 229 s, as if it were a new one.
    const Course during = course(150s);
    EXPECT_EQ(during.outcomes[0].ending, Ending::completed);
    EXPECT_EQ(during.outcomes[0].links, 2);
    EXPECT_EQ(during.outcomes[2].ending, Ending::refused) << "the requeued job still counts";
    EXPECT_EQ(course(2000s).outcomes[2].ending, Ending::completed);
}

TEST(Policy, GraceEndsWhenTheLoopComesRound)
{
    const std::vector<Job> jobs = {in(job(1, 0s, 1000s, 4), {1}), in(job(2, 100s, 50s, 2), {0})};
    const Course course = course_of(lending(Preempt::cancel, 8s), jobs);
    EXPECT_EQ(course.outcomes[1].start, 127s); // grace to 108 s, found at 120 s, killed 5 s later
    EXPECT_EQ(course.outcomes[0].ending, Ending::cancelled);
}

TEST(Policy, OnlyAsManyGuestsLeaveAsMust)
{
    const std::vector<Job> jobs = {in(job(1, 0s, 1000s, 2), {1}), in(job(2, 1s, 1000s, 2), {1}),
                                   in(job(3, 100s, 50s, 1), {0})};
    const Course course = course_of(lending(Preempt::requeue, 0s), jobs);
    EXPECT_EQ(course.outcomes[0].preempted + course.outcomes[1].preempted, 1);
    EXPECT_EQ(course.outcomes[1].preempted, 1); // the younger one
}

TEST(Policy, AGuestThatCanSaveGoesOnElsewhere)
{
    Machine machine = lending(Preempt::requeue, 0s);
    machine.nodes.push_back({.name = "other", .gpus = 4});
    machine.partitions.push_back({.name = "third", .nodes = {1}, .max_time = 48h});
    Job guest = in(job(1, 0s, 1000s, 4), {1});
    guest.chain = Chain{.limit = 48h, .partitions = {2}};
    const Course course = course_of(machine, {guest, in(job(2, 100s, 500s, 4), {0})});
    EXPECT_EQ(course.outcomes[0].end, 1000s); // nothing lost, no gap, a free node
    EXPECT_EQ(course.pieces.back().partition, 2);
}

TEST(Policy, NobodyIsPreemptedBeforeTheExemptTime)
{
    Machine machine = lending(Preempt::requeue, 0s);
    machine.settings.timing.preempt_exempt = 600s;
    const Course course =
        course_of(machine, {in(job(1, 0s, 1000s, 4), {1}), in(job(2, 100s, 50s, 2), {0})});
    EXPECT_GE(course.outcomes[1].start, 608s);
    EXPECT_LE(course.outcomes[1].start, 640s);
}

TEST(Policy, AReservationIsKeptForItsPeople)
{
    Machine machine = one_partition(1, 4);
    machine.reservations = {{.name = "course", .nodes = {0}, .start = 1000s, .end = 2000s}};
    Job theirs = job(2, 0s, 100s, 4);
    theirs.reservation = 0;
    const Course course = course_of(machine, {job(1, 0s, 1100s, 1), theirs, job(3, 0s, 900s, 1)});
    EXPECT_EQ(course.outcomes[1].start, 1000s);
    EXPECT_EQ(course.outcomes[2].start, 0s);
    EXPECT_EQ(course.outcomes[0].start, 2000s);
}

TEST(Policy, AFloatingReservationKeepsLongJobsOut)
{
    Machine machine = one_partition(2, 1);
    machine.reservations = {
        {.name = "guard", .nodes = {0}, .start = 2h, .end = 3h, .floats = true}};
    const Course course = course_of(
        machine, {job(1, 0s, 2h, 1), job(2, 0s, 3h, 1), job(3, 0s, 3h, 1), job(4, 3h, 2h, 1)});
    EXPECT_EQ(starts(course), (std::vector<std::int64_t>{0, 0, 10800, 10800}));
    EXPECT_EQ(course.pieces[0].nodes, (std::vector<int>{0}));
}

TEST(Policy, FairShareLetsThoseGoFirstWhoHaveUsedLess)
{
    Machine machine = one_partition(1, 1);
    machine.settings.weights.fair_share = 1000;
    const Course course =
        course_of(machine, {job(1, 0s, 1h, 1), job(2, 60s, 1h, 1), job(3, 120s, 1h, 1, "bob")});
    EXPECT_EQ(starts(course), (std::vector<std::int64_t>{0, 7200, 3600}));
}

TEST(Policy, AGpuHourCountsByTheModelThatTheJobHas)
{
    // Both have used one GPU for an hour when they wait for the third node.
    Machine machine = one_partition(3, 1);
    machine.nodes[0].model = "k80";
    machine.nodes[1].model = "p100";
    machine.partitions = {{.name = "old", .nodes = {0}, .max_time = 48h},
                          {.name = "new", .nodes = {1}, .max_time = 48h},
                          {.name = "both", .nodes = {2}, .max_time = 48h}};
    machine.settings.weights.fair_share = 1000;
    const auto first = [&](double old_weight) {
        machine.settings.gpu_weights = {{"k80", old_weight}, {"p100", 1}};
        const Course course =
            course_of(machine, {in(job(1, 0s, 1h, 1), {0}), in(job(2, 0s, 1h, 1, "bob"), {1}),
                                in(job(3, 0s, 2h, 1, "cyd"), {2}), in(job(4, 90min, 1h, 1), {2}),
                                in(job(5, 91min, 1h, 1, "bob"), {2})});
        return course.outcomes[3].start < course.outcomes[4].start ? "alice" : "bob";
    };
    EXPECT_STREQ(first(0.1), "alice");
    EXPECT_STREQ(first(10), "bob");
}

TEST(Policy, AgeAndSizeCountAsTheirWeightsSay)
{
    Machine machine = one_partition(4, 1);
    machine.settings.weights.job_size = 1000;
    const Course course =
        course_of(machine, {job(1, 0s, 1000s, 4), job(2, 1s, 1000s, 1), job(3, 2s, 1000s, 4)});
    EXPECT_EQ(starts(course), (std::vector<std::int64_t>{0, 2000, 1000}));
    machine.settings.weights.age = 1e9;
    machine.settings.weights.calc_period = Seconds{60};
    EXPECT_EQ(starts(course_of(
                  machine, {job(1, 0s, 1000s, 4), job(2, 1s, 1000s, 1), job(3, 300s, 1000s, 4)})),
              (std::vector<std::int64_t>{0, 1000, 2000}));
}

TEST(Policy, GpuMinutesAheadRunDown)
{
    Machine machine = one_partition(1, 4);
    machine.qos = {{.name = "ahead", .group_gpu_minutes = 100}};
    machine.partitions[0].qos = 0;
    const Course course = course_of(machine, {job(1, 0s, 90min, 1), job(2, 0s, 30min, 1)});
    // 90 and 30 minutes exceed the limit until 20 minutes of the first job have run; this is
    // detected at the next calculation.
    EXPECT_GE(course.outcomes[1].start, 20min);
    EXPECT_LE(course.outcomes[1].start, 26min);
}

} // namespace
} // namespace gpuq::sim::small
