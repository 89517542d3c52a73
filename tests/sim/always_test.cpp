// SPDX-License-Identifier: GPL-2.0-or-later
// Invariants of every simulation, checked on generated weeks of jobs.
#include "sim/small_machine.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace gpuq::sim::small {
namespace {

/// Three partitions with tiers, a cap, overflow and lent nodes.
Machine centre()
{
    Machine machine = one_partition(6, 4);
    machine.qos.push_back({.name = "cap", .gpus_per_user = 2});
    machine.qos.push_back({.name = "eight", .gpus_per_user = 8});
    machine.partitions[0].nodes = {1, 2, 3, 4, 5};
    machine.partitions[0].tier = 10;
    machine.partitions[0].qos = 1;
    machine.partitions.push_back(
        {.name = "calib", .nodes = {0}, .max_time = 2h, .tier = 20, .qos = 0});
    machine.partitions.push_back({.name = "spill", .nodes = {1, 2, 3}, .max_time = 2h, .tier = 4});
    return machine;
}

std::vector<Job> routed(std::vector<Job> jobs)
{
    for (Job& made : jobs) {
        if (made.limit <= 2h && made.gpus <= 4) {
            made.partitions = {1, 2};
        } else {
            made.chain = Chain{.limit = 48h, .partitions = {0}};
        }
    }
    return jobs;
}

/// Calls `check` at each moment at which a piece starts, with the running pieces.
template <typename Check>
void at_every_moment(const Course& course, Check check)
{
    std::map<Seconds, int> moments;
    for (const Piece& piece : course.pieces) {
        moments[piece.start] = 0;
    }
    for (const auto& [moment, unused] : moments) {
        std::vector<const Piece*> running;
        for (const Piece& piece : course.pieces) {
            if (piece.start <= moment && moment < piece.end) {
                running.push_back(&piece);
            }
        }
        check(running);
    }
}

class Always : public ::testing::TestWithParam<unsigned> {};

TEST_P(Always, NoGpuHasTwoJobs)
{
    const Machine machine = centre();
    const Course course = course_of(machine, routed(busy_week(GetParam(), 300, 8)));
    at_every_moment(course, [&](const std::vector<const Piece*>& running) {
        std::vector<int> used(machine.nodes.size());
        for (const Piece* piece : running) {
            for (std::size_t i = 0; i < piece->nodes.size(); ++i) {
                used[static_cast<std::size_t>(piece->nodes[i])] += piece->gpus[i];
            }
        }
        for (std::size_t node = 0; node < used.size(); ++node) {
            EXPECT_LE(used[node], machine.nodes[node].gpus);
        }
    });
}

TEST_P(Always, NoCapIsBroken)
{
    const std::vector<Job> jobs = routed(busy_week(GetParam(), 300, 8));
    const Course course = course_of(centre(), jobs);
    at_every_moment(course, [&](const std::vector<const Piece*>& running) {
        std::map<std::pair<int, std::string>, int> held;
        for (const Piece* piece : running) {
            held[{piece->partition, jobs[piece->job].user}] +=
                std::accumulate(piece->gpus.begin(), piece->gpus.end(), 0);
        }
        for (const auto& [who, gpus] : held) {
            EXPECT_LE(gpus, who.first == 0 ? 8 : who.first == 1 ? 2 : 12);
        }
    });
}

TEST_P(Always, EveryPieceKeepsToItsPartitionAndItsTime)
{
    const Machine machine = centre();
    const std::vector<Job> jobs = routed(busy_week(GetParam(), 300, 8));
    for (const Piece& piece : course_of(machine, jobs).pieces) {
        const Partition& partition = machine.partitions[static_cast<std::size_t>(piece.partition)];
        for (const int node : piece.nodes) {
            EXPECT_EQ(std::count(partition.nodes.begin(), partition.nodes.end(), node), 1);
        }
        EXPECT_LE(piece.eligible, piece.start);
        EXPECT_LE(piece.end - piece.start, partition.max_time + 30s);
        EXPECT_EQ(std::accumulate(piece.gpus.begin(), piece.gpus.end(), 0), jobs[piece.job].gpus);
    }
}

TEST_P(Always, AllWorkIsDone)
{
    const std::vector<Job> jobs = routed(busy_week(GetParam(), 300, 8));
    const Course course = course_of(centre(), jobs);
    std::vector<Seconds> done(jobs.size());
    for (const Piece& piece : course.pieces) {
        done[piece.job] += piece.end - piece.start;
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        EXPECT_EQ(course.outcomes[i].ending, Ending::completed) << i;
        EXPECT_EQ(done[i], jobs[i].duration) << i;
    }
}

TEST_P(Always, MoreGpusDoNotMakePeopleWait)
{
    const std::vector<Job> jobs = busy_week(GetParam(), 300, 8);
    const auto waited = [&](int nodes) {
        Seconds sum{0};
        for (const Outcome& outcome : course_of(one_partition(nodes, 4), jobs).outcomes) {
            sum += outcome.waited;
        }
        return sum;
    };
    // True for the total of a week, not for every single schedule.
    const Seconds few = waited(3);
    EXPECT_LE(waited(4), few + few / 50);
    EXPECT_LE(waited(8), few / 2 + 1h);
}

TEST_P(Always, WithoutBackfillOneUsersJobsNeverServeTheOthers)
{
    Machine machine = one_partition(3, 4);
    machine.settings.backfill.on = false;
    const std::vector<Job> jobs = busy_week(GetParam(), 200, 4);
    std::vector<Job> fewer;
    Seconds with{0};
    const Course all = course_of(machine, jobs);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (jobs[i].user != "user0") {
            fewer.push_back(jobs[i]);
            with += all.outcomes[i].waited;
        }
    }
    Seconds without{0};
    for (const Outcome& outcome : course_of(machine, fewer).outcomes) {
        without += outcome.waited;
    }
    EXPECT_LE(without, with + with / 100);
}

INSTANTIATE_TEST_SUITE_P(Weeks, Always, ::testing::Values(1U, 2U, 3U, 4U));

} // namespace
} // namespace gpuq::sim::small
