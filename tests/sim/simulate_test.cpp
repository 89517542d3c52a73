// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/small_machine.h"

#include <algorithm>

namespace gpuq::sim::small {
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
    // The head needs the whole node at 1000 s; the third job ends before that, the fourth does not.
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
    // Two nodes, busy until 1000 s and 2000 s, each with one GPU free. Two jobs wait for a whole
    // node each: a third one may not delay the second of them either.
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
    // The second job needs both GPUs next. The third would end long before, but its limit is two
    // days.
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
    // 300 s done, 20 s lost; 500 s done, 20 s lost; 240 s left.
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
    // 60,000 calculations, about fifty jobs each; their age grows only in the first sixty.
    EXPECT_LE(course_of(machine, jobs).effort.priorities, 61 * 100);
}

TEST(Simulate, SaysWhatMakesNoSense)
{
    Machine machine = one_partition(1, 1);
    machine.partitions[0].nodes = {5};
    EXPECT_EQ(simulate(machine, {}).error().text,
              "invalid simulated machine: partition main names an unknown node");
    Job lost = job(3, 0s, 1s, 1);
    lost.partitions = {1};
    EXPECT_EQ(simulate(one_partition(1, 1), {lost}).error().text, "job 3 has an unknown partition");
    Job nothing = job(4, 0s, 1s, 0);
    EXPECT_EQ(simulate(one_partition(1, 1), {nothing}).error().text,
              "job 4 has an invalid number of GPUs, nodes or CPUs, or amount of memory");
    for (const auto part : {-1ms, 1000ms}) {
        Job odd = job(5, 0s, 1s, 1);
        odd.submit_part = part;
        EXPECT_EQ(simulate(one_partition(1, 1), {odd}).error().text,
                  "job 5 has an invalid submit_ms or duration_ms: must be 0 to 999");
        std::swap(odd.submit_part, odd.duration_part);
        EXPECT_FALSE(simulate(one_partition(1, 1), {odd}));
    }
    machine = one_partition(2, 1);
    machine.nodes[1].leaf = 1;
    EXPECT_EQ(simulate(machine, {}).error().text,
              "invalid simulated machine: node n1 is on no switch, or on one too many");
}

/// A job that requests CPUs on one node and no GPUs.
Job without_gpus(std::uint64_t id, Seconds submit, Seconds duration, int cpus,
                 const std::string& user = "alice")
{
    Job made = job(id, submit, duration, 0, user);
    made.cpus_per_node = cpus;
    return made;
}

/// Like `one_partition`, with 12 CPUs and no GPUs per node.
Machine without_gpus(int nodes)
{
    Machine machine = one_partition(nodes, 0);
    for (Node& node : machine.nodes) {
        node.cpus = 12;
        node.memory_mib = 48000;
    }
    return machine;
}

TEST(Simulate, JobsWithoutGpusShareCpusAndMemory)
{
    std::vector<Job> jobs = {without_gpus(1, 0s, 100s, 6), without_gpus(2, 1s, 100s, 6),
                             without_gpus(3, 2s, 100s, 1), without_gpus(4, 200s, 100s, 1),
                             without_gpus(5, 201s, 100s, 1)};
    jobs[3].memory_per_node_mib = 40000;
    jobs[4].memory_per_node_mib = 10000;
    EXPECT_EQ(starts(course_of(without_gpus(1), jobs)), (Starts{0, 1, 100, 200, 300}));
}

TEST(Simulate, FeaturesChooseNodes)
{
    Machine machine = without_gpus(2);
    machine.nodes[1].features = {"fast", "big"};
    std::vector<Job> jobs = {without_gpus(1, 0s, 100s, 12), without_gpus(2, 1s, 100s, 12),
                             without_gpus(3, 2s, 100s, 12)};
    jobs[0].features = {"big", "fast"};
    jobs[2].features = {"none"};
    const Course course = course_of(machine, jobs);
    EXPECT_EQ(starts(course), (Starts{0, 1, -1}));
    EXPECT_EQ(course.pieces[0].nodes, (std::vector<int>{1}));
    EXPECT_EQ(course.outcomes[2].ending, Ending::refused);
}

TEST(Simulate, BackfillLooksAtSoManyJobsOfAUser)
{
    // The first job holds one GPU, the second waits for all four. The limit of two tested jobs per
    // user leaves one of alice's short jobs, since the second job is hers too.
    Machine machine = one_partition(1, 4);
    machine.settings.backfill.max_jobs_per_user = 2;
    const Course course =
        course_of(machine, {job(1, 0s, 1000s, 1), job(2, 1s, 1000s, 4), job(3, 2s, 600s, 1),
                            job(4, 3s, 600s, 1), job(5, 4s, 600s, 1, "bob")});
    EXPECT_LT(course.outcomes[2].start, 100s);
    EXPECT_GE(course.outcomes[3].start, 600s);
    EXPECT_LT(course.outcomes[4].start, 100s);
}

TEST(Simulate, AJobThatDoesNotSayItsNodesCountsForOneInPriority)
{
    Machine machine = one_partition(4, 1);
    machine.settings.weights.job_size = 1000;
    std::vector<Job> jobs = {job(1, 0s, 400s, 4), job(2, 1s, 100s, 2), job(3, 2s, 100s, 4)};
    machine.settings.backfill.on = false;
    EXPECT_EQ(starts(course_of(machine, jobs)), (Starts{0, 500, 400}));
    // Larger, but Slurm counts it as one node: it goes behind a job of two nodes.
    jobs[2].min_nodes = 1;
    jobs[2].gpus = 3;
    EXPECT_EQ(starts(course_of(machine, jobs)), (Starts{0, 400, 500}));
}

TEST(Simulate, CpusCountInFairShareWhereTheyHaveAWeight)
{
    Machine machine = without_gpus(1);
    machine.settings.weights.fair_share = 1000;
    machine.settings.cpu_weight = 1;
    machine.settings.weights.calc_period = 60s;
    // Alice has used the node, so bob's job goes first although it was submitted later.
    const std::vector<Job> jobs = {without_gpus(1, 0s, 500s, 12), without_gpus(2, 1s, 500s, 12),
                                   without_gpus(3, 2s, 500s, 12, "bob")};
    EXPECT_EQ(starts(course_of(machine, jobs)), (Starts{0, 1000, 500}));
    machine.settings.cpu_weight = 0;
    EXPECT_EQ(starts(course_of(machine, jobs)), (Starts{0, 500, 1000}));
    machine.settings.cpu_weight = 1;
    machine.settings.weights.dampening = 5;
    EXPECT_EQ(starts(course_of(machine, jobs)), (Starts{0, 1000, 500}));
}

TEST(Simulate, BackfillFindsWhatEndedAfterTheMainLoopsTurn)
{
    // The first job ends after the main loop's turn of that second. A job is submitted every half
    // minute, so that a backfill cycle is due then.
    Machine machine = one_partition(1, 1);
    machine.settings.timing.completion = 1000ms;
    const std::vector<Job> jobs = {job(1, 0s, 91s, 1), job(2, 1s, 100s, 1), job(3, 3s, 100s, 1),
                                   job(4, 40s, 100s, 1), job(5, 70s, 100s, 1)};
    EXPECT_EQ(course_of(machine, jobs).outcomes[1].start, 91s);
    machine.settings.backfill.on = false;
    EXPECT_EQ(course_of(machine, jobs).outcomes[1].start, 92s);
    machine.settings.timing.completion = 0ms;
    EXPECT_EQ(course_of(machine, jobs).outcomes[1].start, 91s);
}

TEST(Simulate, TheMainLoopKnowsOfASubmissionOnItsNextTurn)
{
    Machine machine = one_partition(1, 4);
    machine.settings.backfill.on = false;
    machine.settings.timing.submission = 1000ms;
    // The turn in the second of the submission does not see the job yet.
    EXPECT_EQ(starts(course_of(machine, {job(1, 5s, 10s, 1), job(2, 6s, 10s, 1)})), (Starts{6, 7}));
}

TEST(Simulate, PartsOfSecondsSayWhoSeesWhatFirst)
{
    // Backfill runs every 30 s, 0.5 s after a turn of the main loop: at 91.5 s. The second job ends
    // before or after that cycle, and its GPU goes to the third job.
    Machine machine = one_partition(1, 2);
    machine.settings.backfill.phase = 1500ms;
    for (const auto& [part, start] : {std::pair(0ms, 91s), std::pair(400ms, 91s),
                                      std::pair(600ms, 92s), std::pair(900ms, 92s)}) {
        std::vector<Job> jobs = {job(1, 0s, 900s, 1), job(2, 0s, 91s, 1), job(3, 3s, 100s, 1),
                                 job(4, 40s, 100s, 2), job(5, 70s, 100s, 2)};
        jobs[1].duration_part = part;
        EXPECT_EQ(course_of(machine, jobs).outcomes[2].start, start) << part.count();
        machine.settings.backfill.on = false;
        EXPECT_EQ(course_of(machine, jobs).outcomes[2].start, part > 0ms ? 92s : 91s);
        machine.settings.backfill.on = true;
    }
}

TEST(Simulate, AJobOfBackfillEndsByItsPartOfTheSecond)
{
    // Backfill starts the third job 0.7 s after a turn of the main loop, or together with it.
    Machine machine = one_partition(1, 2);
    std::vector<Job> jobs = {job(1, 0s, 900s, 1), job(2, 5s, 900s, 2), job(3, 6s, 60s, 1),
                             job(4, 7s, 60s, 1)};
    jobs[2].duration_part = 0ms;
    for (const auto& [phase, next] : {std::pair(31700ms, 92s), std::pair(31000ms, 91s)}) {
        machine.settings.backfill.phase = phase;
        const Course course = course_of(machine, jobs);
        EXPECT_EQ(course.outcomes[2].start, 31s);
        EXPECT_GE(course.outcomes[3].start, next);
        EXPECT_LE(course.outcomes[3].start, 122s);
    }
}

TEST(Simulate, TakesAnEndBehindOneOfAnotherNodeWithTheOneBefore)
{
    // The third job waits for two GPUs on n0, which are free at 1000 s. Slurm checks whether the
    // next end is close only if the end before it is on n0: an end on n1 at 1010 s makes it merge
    // the end at 3000 s as well, so the fourth job may use the free GPU until then.
    Machine machine = one_partition(2, 3);
    machine.partitions.push_back(machine.partitions[0]);
    machine.partitions[1].name = "only_n0";
    machine.partitions[1].nodes = {0};
    for (const Seconds other : {1010s, 2000s}) {
        std::vector<Job> jobs = {job(1, 0s, 1000s, 1), job(2, 0s, 3000s, 1), job(3, 10s, 500s, 2),
                                 job(4, 20s, 1500s, 1), job(5, 0s, other, 3)};
        for (Job& one : jobs) {
            one.partitions = {one.gpus == 3 ? 0 : 1};
        }
        const Seconds start = course_of(machine, jobs).outcomes[3].start;
        EXPECT_EQ(start < 100s, other == 1010s) << start.count();
    }
}

TEST(Simulate, ReleasesDifferInWhenBackfillRuns)
{
    // One job runs, one waits, nothing changes.
    Machine machine = one_partition(1, 1);
    const std::vector<Job> jobs = {job(1, 0s, 3000s, 1), job(2, 1s, 100s, 1)};
    EXPECT_LT(course_of(machine, jobs).effort.backfill_cycles, 5);
    machine.settings.release = 1711;
    EXPECT_NEAR(static_cast<double>(course_of(machine, jobs).effort.backfill_cycles), 100, 2);
    machine.settings.timing.backfill_test = 10s; // a slow Slurm: its cycles come later
    EXPECT_NEAR(static_cast<double>(course_of(machine, jobs).effort.backfill_cycles), 75, 2);
}

TEST(Simulate, ReleasesDifferInWhichEndsTheyTakeTogether)
{
    // The fourth job waits for two nodes. 22.05 considers the ends at 1000 s and at 1100 s
    // separately and books n1 and n2. 17.11 merges 1150 s with 1100 s and books the first two
    // nodes, so the fifth job may use the last GPU of n2.
    Machine machine = one_partition(3, 4);
    const std::vector<Job> jobs = {job(1, 0s, 1150s, 4), job(2, 0s, 1100s, 4), job(3, 0s, 1000s, 3),
                                   job(4, 1s, 500s, 8), job(5, 860s, 300s, 1)};
    EXPECT_GE(course_of(machine, jobs).outcomes[4].start, 1100s);
    machine.settings.release = 1711;
    EXPECT_LT(course_of(machine, jobs).outcomes[4].start, 900s);
}

} // namespace
} // namespace gpuq::sim::small
