// SPDX-License-Identifier: GPL-2.0-or-later
// Jobs with shares of a GPU.
#include "sim/measure.h"
#include "sim/small_machine.h"

#include <map>
#include <utility>

namespace gpuq::sim::small {
namespace {

using Starts = std::vector<std::int64_t>;

Machine shared_partition(int nodes, int gpus, int per_gpu)
{
    Machine machine = one_partition(nodes, gpus);
    for (Node& node : machine.nodes) {
        node.per_gpu = per_gpu;
    }
    return machine;
}

Job share(std::uint64_t id, Seconds submit, Seconds duration, int shares,
          const std::string& user = "alice")
{
    Job made = job(id, submit, duration, 0, user);
    made.shares = shares;
    return made;
}

/// The number of the GPU of each job on its node.
std::map<std::size_t, int> gpus_of(const Course& course)
{
    std::map<std::size_t, int> gpus;
    for (const Piece& piece : course.pieces) {
        for (int gpu = 0; gpu < GpuParts::k_most_gpus; ++gpu) {
            if (piece.parts.at(0).on(gpu) > 0) {
                gpus[piece.job] = gpu;
            }
        }
    }
    return gpus;
}

TEST(Shares, AsManyJobsRunOnAGpuAsItHasShares)
{
    const Course course =
        course_of(shared_partition(1, 1, 2),
                  {share(1, 0s, 100s, 1), share(2, 0s, 50s, 1), share(3, 1s, 30s, 1)});
    EXPECT_EQ(starts(course), (Starts{0, 0, 50}));
    EXPECT_EQ(course.pieces.front().gpus, std::vector<int>{0});
}

TEST(Shares, AWholeGpuIsFreeWhenItsLastShareIs)
{
    const Course course =
        course_of(shared_partition(1, 1, 2), {share(1, 0s, 100s, 1), share(2, 0s, 50s, 1),
                                              job(3, 1s, 30s, 1), share(4, 2s, 10s, 2)});
    EXPECT_EQ(starts(course), (Starts{0, 0, 100, 130}));
}

TEST(Shares, AreOfOneGpu)
{
    // A share of each GPU is free: not two of one.
    const Course course =
        course_of(shared_partition(1, 2, 4), {share(1, 0s, 100s, 3), share(2, 0s, 80s, 3),
                                              share(3, 1s, 30s, 2), share(4, 2s, 10s, 1)});
    EXPECT_EQ(course.outcomes[2].start, 80s);
    EXPECT_LE(course.outcomes[3].start, 60s); // by backfill
}

/// As seen in Slurm 22.05: not of the fullest GPU, and even of one that no other job shares.
TEST(Shares, AreOfTheFirstGpuThatHasEnough)
{
    const Course course =
        course_of(shared_partition(1, 2, 4), {share(1, 0s, 100s, 2), share(2, 0s, 100s, 3),
                                              share(3, 1s, 100s, 1), share(4, 2s, 100s, 1)});
    EXPECT_EQ(gpus_of(course), (std::map<std::size_t, int>{{0, 0}, {1, 1}, {2, 0}, {3, 0}}));
    const Course later =
        course_of(shared_partition(1, 2, 4),
                  {share(1, 0s, 50s, 4), share(2, 0s, 100s, 1), share(3, 60s, 100s, 1)});
    EXPECT_EQ(gpus_of(later), (std::map<std::size_t, int>{{0, 0}, {1, 1}, {2, 0}}));
}

TEST(Shares, WholeGpusAndSharesOnOneNode)
{
    const Course course =
        course_of(shared_partition(1, 4, 2), {share(1, 0s, 100s, 1), job(2, 1s, 200s, 3),
                                              share(3, 2s, 50s, 1), job(4, 3s, 10s, 1)});
    EXPECT_EQ(starts(course), (Starts{0, 1, 2, 100}));
}

TEST(Shares, AreBackfilledIfTheyEndInTime)
{
    // The second job waits for the whole GPU until 1000 s.
    const Course course =
        course_of(shared_partition(1, 1, 2), {share(1, 0s, 1000s, 1), job(2, 10s, 500s, 1),
                                              share(3, 20s, 600s, 1), share(4, 700s, 600s, 1)});
    EXPECT_EQ(course.outcomes[1].start, 1000s);
    EXPECT_LE(course.outcomes[2].start, 60s);
    EXPECT_EQ(course.outcomes[3].start, 1500s);
}

TEST(Shares, HaveLimitsOfTheirOwn)
{
    Machine machine = shared_partition(1, 2, 4);
    machine.qos.push_back({.name = "cap", .gpus_per_user = 1, .shares_per_user = 1});
    machine.partitions[0].qos = 0;
    const Course course =
        course_of(machine, {share(1, 0s, 100s, 1), share(2, 0s, 100s, 1), job(3, 0s, 100s, 1),
                            share(4, 0s, 100s, 1, "bob"), share(5, 0s, 100s, 2, "bob")});
    EXPECT_EQ(starts(course), (Starts{0, 100, 0, 0, -1}));
}

TEST(Shares, CountAsFractionsOfAGpu)
{
    const Machine machine = shared_partition(1, 1, 4);
    // A quarter until 100 s, then all of it until 200 s.
    const std::vector<Job> jobs = {share(1, 0s, 100s, 1), job(2, 0s, 100s, 1),
                                   share(3, 400s, 1s, 1)};
    const Measures measures = measure(machine, jobs, course_of(machine, jobs));
    EXPECT_DOUBLE_EQ(measures.use, (25.0 + 100) / 400);
    EXPECT_DOUBLE_EQ(measures.idle_while_waiting, 75.0 / 400);
    EXPECT_DOUBLE_EQ(measures.idle_while_allowed, 0); // the whole GPU is waited for
}

TEST(Shares, FairShareChargesFractions)
{
    Machine machine = shared_partition(1, 1, 4);
    machine.settings.weights.fair_share = 1000;
    // Ann has used a quarter of a GPU for longer than Bob has used one.
    std::vector<Job> jobs = {share(1, 0s, 3000s, 1, "ann"), job(2, 3000s, 2000s, 1, "bob"),
                             job(3, 5000s, 1000s, 1, "eve"), job(4, 5100s, 100s, 1, "bob"),
                             job(5, 5200s, 100s, 1, "ann")};
    for (Job& each : jobs) {
        each.account = each.user;
    }
    EXPECT_EQ(starts(course_of(machine, jobs)), (Starts{0, 3000, 5000, 6100, 6000}));
}

TEST(Shares, ThatNoNodeHasAreRefused)
{
    const Course course = course_of(shared_partition(1, 1, 2), {share(1, 0s, 100s, 3)});
    EXPECT_EQ(course.outcomes[0].ending, Ending::refused);
    EXPECT_EQ(course_of(one_partition(1, 1), {share(1, 0s, 100s, 1)}).outcomes[0].ending,
              Ending::refused);
    Job both = share(1, 0s, 1s, 1);
    both.gpus = 1;
    EXPECT_FALSE(simulate(one_partition(1, 1), {both}));
    EXPECT_FALSE(simulate(shared_partition(1, 9, 2), {}));
    EXPECT_FALSE(simulate(shared_partition(1, 1, 101), {}));
}

TEST(Shares, OnlyAsManyGuestsLeaveAsMust)
{
    Machine machine = shared_partition(1, 1, 4);
    machine.settings.preempts = true;
    machine.partitions[0].preempt = Preempt::cancel;
    machine.partitions.push_back({.name = "owner", .nodes = {0}, .tier = 9});
    Job owner = share(4, 500s, 100s, 2);
    owner.partitions = {1};
    const Course course = course_of(
        machine, {share(1, 0s, 5000s, 1), share(2, 1s, 5000s, 1), share(3, 2s, 5000s, 2), owner});
    int left = 0;
    for (const Outcome& outcome : course.outcomes) {
        left += outcome.preempted;
    }
    EXPECT_EQ(left, 1);
    EXPECT_EQ(course.outcomes[2].preempted, 1); // the youngest; its shares are enough
    EXPECT_GT(course.outcomes[3].start, 500s);
    EXPECT_LT(course.outcomes[3].start, 700s);
}

/// Never more shares of a GPU than it has, and a whole GPU for one job alone.
TEST(Shares, NoGpuHasTooManyJobs)
{
    for (unsigned seed = 1; seed <= 5; ++seed) {
        const Machine machine = shared_partition(3, 4, 4);
        std::vector<Job> jobs = busy_week(seed, 300, 6);
        for (Job& each : jobs) {
            if (each.id % 3 != 0) {
                each.gpus = 0;
                each.shares = 1 + static_cast<int>(each.id % 4);
            }
        }
        const Course course = course_of(machine, jobs);
        for (const Piece& one : course.pieces) {
            std::map<std::pair<int, int>, int> held; // when it starts, by node and GPU
            for (const Piece& other : course.pieces) {
                const bool runs = other.start <= one.start && one.start < other.end;
                for (std::size_t i = 0; runs && i < other.nodes.size(); ++i) {
                    for (int gpu = 0; gpu < 4; ++gpu) {
                        held[{other.nodes[i], gpu}] += other.parts[i].on(gpu);
                    }
                }
            }
            for (const auto& [gpu, parts] : held) {
                ASSERT_LE(parts, 4) << seed;
            }
            double gpus = 0;
            for (std::size_t i = 0; i < one.nodes.size(); ++i) {
                gpus += gpus_on(machine, one, i);
            }
            ASSERT_DOUBLE_EQ(gpus, jobs[one.job].gpus + jobs[one.job].shares / 4.0);
        }
        for (const Outcome& outcome : course.outcomes) {
            EXPECT_EQ(outcome.ending, Ending::completed);
        }
    }
}

} // namespace
} // namespace gpuq::sim::small
