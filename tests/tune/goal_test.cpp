// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::tune {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Goal, ReadsTargets)
{
    EXPECT_EQ(*parse_targets("short: p95<=5m"), (std::vector<Goal>{{"short", 95, 5min}}));
    EXPECT_EQ(*parse_targets(" q : p50 <= 30s, max<=2h ,mean<=1m"),
              (std::vector<Goal>{{"q", 50, 30s}, {"q", 100, 2h}, {"q", 0, 1min}}));
    for (const char* text : {"", "short", ": p95<=5m", "q: p95", "q: p95<5m", "q: p0<=5m",
                             "q: p100<=5m", "q: q95<=5m", "q: p95<=5", "q: p95<=", "q: p95<=5m,"}) {
        EXPECT_FALSE(parse_targets(text)) << text;
    }
    EXPECT_THAT(parse_targets("q: p95<=5").error().text, HasSubstr("unit"));
}

TEST(Goal, ReadsBounds)
{
    const auto percent = parse_keep("long: +20%");
    EXPECT_EQ(percent->percent_more, 20);
    EXPECT_FALSE(percent->is_target());
    EXPECT_EQ(parse_keep("long:+30m")->time_more, 30min);
    for (const char* text :
         {"long", "long: 20%", "long: +", "long: +x%", "long: +20", "long: -5%"}) {
        EXPECT_FALSE(parse_keep(text)) << text;
    }
}

TEST(Goal, IsWrittenAsItIsRead)
{
    for (const char* text : {"q: p95<=5m", "q: max<=48h", "q: mean<=90s", "q: p50<=7d"}) {
        EXPECT_EQ(to_text(parse_targets(text)->front()), text);
    }
    for (const char* text : {"q: +20%", "q: +2h"}) {
        EXPECT_EQ(to_text(*parse_keep(text)), text);
    }
}

TEST(Goal, ABoundFollowsFromTheWaitAsItIs)
{
    EXPECT_EQ(limit_of(*parse_keep("q: +20%"), 100s), 120s);
    EXPECT_EQ(limit_of(*parse_keep("q: +1m"), 100s), 160s);
    EXPECT_EQ(limit_of(*parse_keep("q: +100%"), 0s), 2s);
    EXPECT_EQ(limit_of(*parse_keep("q: +20%"), k_never), k_never);
    EXPECT_EQ(limit_of(parse_targets("q: p95<=5m")->front(), 1s), 5min);
}

TEST(Goal, ATargetThatIsHeldByHalfCountsNoFurther)
{
    const Goal target = parse_targets("q: p95<=10m")->front();
    const Goal bound = *parse_keep("q: +20%");
    EXPECT_GT(cost_of(target, 11min, 10min), 0);
    EXPECT_EQ(cost_of(target, 10min, 10min), 0);
    EXPECT_LT(cost_of(target, 6min, 10min), 0);
    EXPECT_EQ(cost_of(target, 5min, 10min), cost_of(target, 0s, 10min));
    EXPECT_LT(cost_of(bound, 0s, 10min), cost_of(bound, 5min, 10min));
    EXPECT_GT(cost_of(bound, k_never, 10min), cost_of(bound, 1000h, 10min));
    EXPECT_EQ(cost_of(bound, k_never, k_never), 0);
}

TEST(Goal, ThePolicysOwnTargetsAreGoals)
{
    policy::Policy policy;
    policy.queues.resize(2);
    policy.queues[1].name = "q";
    policy.queues[1].wait.p95 = {5min, 7};
    policy.queues[1].wait.max = {2h, 8};
    EXPECT_EQ(targets_of(policy), (std::vector<Goal>{{"q", 95, 5min}, {"q", 100, 2h}}));
}

} // namespace
} // namespace gpuq::tune
