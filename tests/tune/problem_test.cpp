// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/problem.h"

#include "tune/small_site.h"

#include <gmock/gmock.h>

namespace gpuq::tune::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string refusal(const Result<Problem>& made)
{
    return made ? "accepted" : made.error().text;
}

TEST(Problem, SearchesInTheFirstWeeksAndChecksInTheLastThird)
{
    const Weeks weeks = *weeks_of(trace_of(9), "t");
    EXPECT_EQ(weeks.searched.text(), "weeks 1 to 6");
    EXPECT_EQ(weeks.unseen.text(), "weeks 7 to 9");
    EXPECT_EQ(weeks.unseen.trace.jobs.front().submit, k_week * 5) << "a week fills the machine";
    EXPECT_LT(weeks.searched.trace.jobs.back().submit, k_week * 6);
    EXPECT_EQ(weeks_of(trace_of(2), "t")->unseen.text(), "week 2");
    EXPECT_THAT(weeks_of(trace_of(1), "t").error().text, HasSubstr("t: shorter than a week"));
    EXPECT_FALSE(weeks_of({}, "t"));
}

TEST(Problem, ATraceWithAGapAtTheEndIsRefused)
{
    sim::Trace trace = trace_of(1);
    trace.jobs.push_back(trace.jobs.back());
    trace.jobs.back().submit = k_week * 2 + 1h;
    EXPECT_TRUE(weeks_of(trace, "t"));
    sim::Trace late = trace;
    late.jobs.erase(late.jobs.begin(), late.jobs.end() - 1);
    EXPECT_THAT(weeks_of(late, "t").error().text, HasSubstr("no jobs in weeks 1 to 2"));
}

TEST(Problem, TakesTheTargetsOfThePolicyAndKeepsTheOtherQueues)
{
    const Problem made = problem();
    ASSERT_EQ(made.goals.size(), 2U);
    EXPECT_EQ(to_text(made.goals[0]), "fast: p95<=10m");
    EXPECT_EQ(to_text(made.goals[1]), "long: +20%");
    EXPECT_GT(made.searched.waits[0], 30min) << "one node is too little";
    EXPECT_EQ(made.searched.limits[0], 10min);
    EXPECT_EQ(made.searched.unserved, 0U);
}

TEST(Problem, ARunStaysInItsGroupWhateverThePolicyDoesWithIt)
{
    const Problem made = problem(k_policy, 3, *parse_targets("short: p95<=5m"));
    ASSERT_EQ(made.goals.size(), 2U);
    EXPECT_EQ(to_text(made.goals[1]), "long: +20%");
    const auto group = [&](const std::string& name) {
        return *std::find_if(made.groups.begin(), made.groups.end(),
                             [&](const Group& one) { return one.name == name; });
    };
    EXPECT_EQ(group("short").runs, group("fast").runs);
    EXPECT_EQ(group("fast").runs + group("long").runs, trace_of(3).jobs.size());
}

TEST(Problem, RefusesGoalsThatNoRunHas)
{
    EXPECT_THAT(
        refusal(problem_of(file_of(k_policy), jobs_of(3), *parse_targets("fats: p95<=5m"), {}, {})),
        HasSubstr("no runs of 'fats'"));
    std::string without = k_policy;
    without.replace(without.find(", wait: {p95: 10m}"), 18, "");
    EXPECT_THAT(refusal(problem_of(file_of(without), jobs_of(3), {}, {}, {})),
                HasSubstr("needs a target"));
    EXPECT_THAT(
        refusal(problem_of(file_of(k_policy), jobs_of(3), {}, {}, {{}, {"pools", "queues"}})),
        HasSubstr("no number"));
}

TEST(Problem, ATrialPassesTheTestsOfTheFile)
{
    const Problem made = problem();
    const Space space = made.numbers.space();
    EXPECT_EQ(trial_of(made, space.start)->text, k_policy);
    Point point = space.start;
    point[0] = 1; // two nodes
    ASSERT_EQ(made.numbers.all[0].path, "pools.first.nodes");
    EXPECT_THAT(trial_of(made, point)->text,
                ::testing::AllOf(HasSubstr("nodes: n[1-2]        # for short runs\n"),
                                 HasSubstr("nodes: n[3-6]        # the rest\n")));
    point[1] = 0; // half an hour
    ASSERT_EQ(made.numbers.all[1].path, "queues.fast.time");
    EXPECT_FALSE(trial_of(made, point)) << "two hours are fast";
}

TEST(Problem, APolicyThatRefusesRunsHoldsNothing)
{
    const Problem made = problem();
    std::string tighter = k_policy;
    tighter.replace(tighter.find("time: 48h"), 9, "time: 4h ");
    EXPECT_EQ(*waits_under(made, tighter, made.weeks.searched, made.searched),
              (std::vector<Seconds>{k_never, k_never}));
    EXPECT_EQ(*waits_under(made, k_policy, made.weeks.searched, made.searched),
              made.searched.waits);
    EXPECT_FALSE(holds(made.searched, made.searched.waits));
    EXPECT_TRUE(holds(made.searched, {10min, 0s}));
}

} // namespace
} // namespace gpuq::tune::testing
