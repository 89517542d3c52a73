// SPDX-License-Identifier: GPL-2.0-or-later
// Unit tests of bookings, placement and fair share.
#include "sim/bookings.h"
#include "sim/fair_share.h"
#include "sim/placement.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpuq::sim {
namespace {

using namespace std::chrono_literals;

TEST(Bookings, AGapIsWhatNobodyHasThroughout)
{
    const NodeSet all = node_set({0, 1});
    Bookings bookings(0s, 24h, 60s, 2);
    bookings.book(600s, 1200s, node_set({0}));
    EXPECT_EQ(bookings.gap(0s, 300s, all).nodes, all);
    EXPECT_EQ(bookings.gap(0s, 700s, all).nodes, node_set({1}));
    EXPECT_EQ(bookings.gap(700s, 800s, node_set({0})).later, 1200s);
    EXPECT_EQ(bookings.gap(1200s, 9000s, all).nodes, all);
    EXPECT_EQ(bookings.gap(1200s, 9000s, all).later, std::nullopt);
}

TEST(Bookings, AreCutToTheResolutionAndNeverEmpty)
{
    Bookings bookings(30s, 24h, 60s, 1);
    bookings.book(130s, 140s, node_set({0}));
    EXPECT_TRUE(bookings.overlaps(120s, 121s, node_set({0})));
    EXPECT_TRUE(bookings.overlaps(179s, 180s, node_set({0})));
    EXPECT_FALSE(bookings.overlaps(180s, 999s, node_set({0})));
    EXPECT_FALSE(bookings.overlaps(0s, 120s, node_set({0})));
}

TEST(Bookings, AreCutByTheClockWhateverTheZeroOfTime)
{
    Bookings bookings(0s, 24h, 60s, 1, 19s); // The clock is at 19 s past the minute.
    bookings.book(100s, 200s, node_set({0}));
    EXPECT_FALSE(bookings.overlaps(0s, 41s, node_set({0})));
    EXPECT_TRUE(bookings.overlaps(41s, 42s, node_set({0})));
    EXPECT_TRUE(bookings.overlaps(160s, 161s, node_set({0})));
    EXPECT_FALSE(bookings.overlaps(161s, 300s, node_set({0})));
}

TEST(Bookings, BeyondTheWindowAreNotKept)
{
    Bookings bookings(0s, 600s, 60s, 1);
    bookings.book(700s, 800s, node_set({0}));
    EXPECT_FALSE(bookings.overlaps(700s, 800s, node_set({0})));
}

std::vector<Node> nodes_of(const std::vector<int>& weights)
{
    std::vector<Node> nodes;
    for (const int weight : weights) {
        nodes.push_back({.gpus = 4, .weight = weight});
    }
    return nodes;
}

NodeSet chosen(const std::vector<Node>& nodes, const std::vector<int>& taken, const Need& need)
{
    std::vector<FreeSpace> rooms = empty_spaces(nodes);
    NodeSet all;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        rooms[i].gpus -= taken[i];
        all.set(i);
    }
    return Placer(nodes).choose(need, all, rooms);
}

TEST(Placement, TakesTheLightestThenTheTightest)
{
    const Need one{.nodes = 1, .gpus = 1, .gpus_in_all = 1};
    EXPECT_EQ(chosen(nodes_of({9, 1, 1}), {0, 0, 0}, one), node_set({1}));
    EXPECT_EQ(chosen(nodes_of({1, 1, 1}), {0, 3, 1}, one), node_set({1}));
    EXPECT_EQ(chosen(nodes_of({1, 1, 1}), {0, 4, 0}, one), node_set({0}));
    EXPECT_EQ(chosen(nodes_of({1, 1}), {4, 4}, one), NodeSet{});
}

TEST(Placement, PrefersNeighboursThatAreJustEnough)
{
    const Need two{.nodes = 2, .gpus = 4, .gpus_in_all = 8};
    EXPECT_EQ(chosen(nodes_of({1, 1, 1, 1, 1, 1}), {0, 0, 0, 4, 0, 0}, two), node_set({4, 5}));
    EXPECT_EQ(chosen(nodes_of({1, 1, 1}), {0, 4, 0}, two), node_set({0, 2}));
}

TEST(Placement, CutsAJobIntoEqualParts)
{
    Job job;
    job.gpus = 6;
    EXPECT_EQ(need_of(job, 4), (Need{.nodes = 2, .gpus = 3, .gpus_in_all = 6}));
    job.gpus = 5;
    EXPECT_EQ(need_of(job, 4), (Need{.nodes = 2, .gpus = 3, .gpus_in_all = 5}));
    job.nodes = 1;
    EXPECT_EQ(need_of(job, 4), std::nullopt);
    job.nodes = 9;
    EXPECT_EQ(need_of(job, 4), std::nullopt);
}

TEST(FairShare, RanksUsersByShareOverUse)
{
    FairShare fair({}, 0s);
    const int ann = fair.user("lab", "ann");
    const int bob = fair.user("lab", "bob");
    const int eve = fair.user("lab", "eve");
    fair.used(ann, 100);
    fair.used(bob, 10);
    fair.rank();
    EXPECT_DOUBLE_EQ(fair.factor(eve), 1);
    EXPECT_DOUBLE_EQ(fair.factor(bob), 2.0 / 3);
    EXPECT_DOUBLE_EQ(fair.factor(ann), 1.0 / 3);
}

TEST(FairShare, AnAccountsUsersComeBeforeThoseOfAWorseServedOne)
{
    FairShare fair({{"rich", "", "", 10}, {"poor", "", "", 1}}, 0s);
    const int ann = fair.user("rich", "ann");
    const int bob = fair.user("poor", "bob");
    const int eve = fair.user("poor", "eve");
    fair.used(ann, 500);
    fair.used(bob, 100);
    fair.rank();
    // rich: 10/11 of the usage with 5/6 of the shares; poor: 1/11 with 1/6.
    EXPECT_GT(fair.factor(ann), fair.factor(eve));
    EXPECT_GT(fair.factor(eve), fair.factor(bob));
}

TEST(Placement, AJobWithoutGpusTakesTheCpusAndMemoryThatItSays)
{
    Job job;
    job.gpus = 0;
    job.nodes = 2;
    job.cpus_per_node = 6;
    job.memory_per_node_mib = 100;
    const std::optional<Need> need = need_of(job, 0);
    ASSERT_TRUE(need);
    EXPECT_EQ(need->nodes, 2);
    EXPECT_EQ(need->gpus, 0);
    std::vector<FreeSpace> rooms = {{2, 12, 150}, {0, 6, 100}};
    EXPECT_TRUE(fits(*need, rooms[1]));
    change(rooms, *need, node_set({0, 1}), {}, -1);
    EXPECT_EQ(rooms[0].gpus, 2);
    EXPECT_EQ(rooms[0].cpus, 6);
    EXPECT_EQ(rooms[1].memory_mib, 0);
    EXPECT_FALSE(fits(*need, rooms[0])); // Its free memory is too small now.
}

TEST(Placement, NodesAreNotComparedByWhatAJobCanNotUse)
{
    std::vector<Node> nodes = nodes_of({1, 1, 1});
    EXPECT_EQ(chosen(nodes, {0, 2, 0}, {.cpus = 0}), node_set({1}));
    EXPECT_EQ(chosen(nodes, {0, 2, 0}, {.cpus = 0, .counted = 1}), node_set({0}));
}

TEST(Placement, ATopologysLeavesAreFilledTheSmallestFirst)
{
    std::vector<Node> nodes = nodes_of({1, 1, 1, 1, 1, 1});
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        nodes[i].leaf = i < 3 ? 1 : i < 5 ? 2 : 3;
    }
    const auto of = [&](int count) {
        return chosen(nodes, {0, 0, 0, 0, 0, 0},
                      {.nodes = count, .gpus = 4, .gpus_in_all = 4 * count});
    };
    EXPECT_EQ(of(1), node_set({5}));
    EXPECT_EQ(of(2), node_set({3, 4}));
    EXPECT_EQ(of(3), node_set({0, 1, 2}));
    // More nodes than any leaf has: the largest leaf first, then the smallest one that suffices.
    EXPECT_EQ(of(4), node_set({0, 1, 2, 5}));
    EXPECT_EQ(of(5), node_set({0, 1, 2, 3, 4}));
}

TEST(Placement, ATopologysLeavesAreFilledWithLightNodesFirst)
{
    std::vector<Node> nodes = nodes_of({2, 1, 1});
    nodes[0].leaf = 1;
    nodes[1].leaf = nodes[2].leaf = 2;
    EXPECT_EQ(chosen(nodes, {0, 0, 0}, {.gpus = 4, .gpus_in_all = 4}), node_set({1}));
}

TEST(FairShare, WithoutATreeAFactorIsHalvedForEachShareUsed)
{
    FairShare fair({{"a", "", "", 1}, {"b", "", "", 1}}, 0s, 1);
    const int ann = fair.user("a", "ann");
    const int bob = fair.user("b", "bob");
    fair.used(ann, 100);
    fair.weigh_accounts();
    EXPECT_DOUBLE_EQ(fair.factor(ann), 0.25); // All of the usage, half of the shares.
    EXPECT_DOUBLE_EQ(fair.factor(bob), 1);
    EXPECT_TRUE(fair.moved(ann));
    EXPECT_FALSE(fair.moved(bob));
}

TEST(FairShare, WithoutATreeAccountsAreWeighedBeforeTheirUsers)
{
    FairShare fair({{"a", "", "", 1}, {"b", "", "", 1}}, 0s, 5);
    const int ann = fair.user("a", "ann");
    const int amy = fair.user("a", "amy");
    const int bob = fair.user("b", "bob");
    fair.used(ann, 50);
    fair.used(bob, 50);
    fair.weigh_accounts();
    fair.used(ann, 100);
    // Ann has 0.75 of the usage (150 of 200), her account 0.5 (50 of 100); the effective usage is
    // halfway between, 0.625. Her share is 0.25.
    EXPECT_DOUBLE_EQ(fair.factor(ann), std::pow(2, -0.625 / 0.25 / 5));
    fair.used(amy, 100); // Ann's factor is cached until accounts are weighed again.
    EXPECT_DOUBLE_EQ(fair.factor(ann), std::pow(2, -0.625 / 0.25 / 5));
    EXPECT_LT(fair.factor(amy), 1);
}

TEST(FairShare, EqualsTieAndUseFadesByHalfInAHalfLife)
{
    FairShare fair({}, 1000s);
    const int ann = fair.user("lab", "ann");
    const int bob = fair.user("lab", "bob");
    fair.rank();
    EXPECT_DOUBLE_EQ(fair.factor(ann), fair.factor(bob));
    fair.used(ann, 100);
    fair.fade(2000s); // 25 are left, less than bob has after the next line
    fair.used(bob, 26);
    fair.rank();
    EXPECT_GT(fair.factor(ann), fair.factor(bob));
}

TEST(Timing, PartsOfSecondsAddUpOverManyJobs)
{
    Seconds sum{0};
    for (std::size_t number = 0; number < 1000; ++number) {
        const Seconds cut = whole_seconds(600ms, number);
        EXPECT_TRUE(cut == 0s || cut == 1s);
        EXPECT_EQ(whole_seconds(0ms, number), 0s);
        EXPECT_EQ(whole_seconds(3000ms, number), 3s);
        sum += cut;
    }
    EXPECT_EQ(sum, 600s);
}

} // namespace
} // namespace gpuq::sim
