// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/targets.h"

#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// A policy for four GPUs; line 6 has the targets of the first queue, line 7 those of the second.
std::string policy_with(const std::string& first, const std::string& second = "max: 48h")
{
    return "version: 1\n"
           "pools:\n"
           "  all: {nodes: n1, gpus: 'k80:4'}\n"
           "queues:\n"
           "  short: {time: 2h, pools: all, limits: {job: {gpus: 4}},\n"
           "    wait: {" +
           first +
           "}}\n"
           "  long: {time: 48h, pools: all, limits: {user: {gpus: 2}}, wait: {" +
           second + "}}\n";
}

TraceJob run_of(Seconds submit, Seconds duration, int gpus)
{
    TraceJob job;
    job.submit = submit;
    job.duration = duration;
    job.gpus = gpus;
    job.user = "ada";
    return job;
}

struct Simulation {
    explicit Simulation(const std::string& text, std::vector<TraceJob> jobs)
        : rules(policy::read_policy(text, "p")->policy)
        , trace{std::move(jobs), 0, 0}
        , scenario(*under_policy(rules, trace, UserModel{}))
        , course(*simulate(scenario.machine, scenario.jobs))
    {
    }
    policy::Rules rules;
    Trace trace;
    Scenario scenario;
    Course course;
};

TEST(Targets, NameTheQueueTheFigureAndTheLine)
{
    // Three runs of one hour, each on the whole node.
    const std::vector<TraceJob> jobs(3, run_of(0s, 1h, 4));
    const Simulation kept(policy_with("p50: 90m, max: 3h"), jobs);
    EXPECT_THAT(broken_targets(kept.rules, kept.scenario, kept.course), IsEmpty());
    const Simulation one(policy_with("p50: 30m, p95: 3h, max: 110m"), jobs);
    const auto broken = broken_targets(one.rules, one.scenario, one.course);
    ASSERT_EQ(broken.size(), 2U);
    EXPECT_EQ(broken[0].queue, "short");
    EXPECT_EQ(broken[0].percent, 50);
    EXPECT_EQ(broken[0].target, 30min);
    EXPECT_GE(broken[0].wait.value(), 1h);
    EXPECT_EQ(broken[0].line, 6);
    EXPECT_EQ(broken[1].percent, 100);
}

TEST(Targets, ARunThatNeverStartsBreaksEvenTheLongest)
{
    Simulation one(policy_with("max: 2h", "p50: 48h, max: 48h"),
                   {run_of(0s, 3h, 1), run_of(1s, 3h, 1), run_of(2s, 3h, 2)});
    one.course.outcomes[2] = Outcome{}; // never started
    const auto broken = broken_targets(one.rules, one.scenario, one.course);
    EXPECT_THAT(broken, ElementsAre(BrokenTarget{"long", 100, 48h, std::nullopt, 7}));
}

TEST(Targets, RefusalsAreRunsOfTheTrace)
{
    const Simulation one(policy_with("max: 2h"),
                         {run_of(0s, 1h, 1), run_of(1s, 1h, 9), run_of(2s, 1h, 1)});
    const auto refused = refusals(one.scenario, one.course);
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_EQ(refused.begin()->first, 1U);
    EXPECT_THAT(refused.begin()->second,
                testing::HasSubstr("queue short gives a job at most 4 GPUs"));
}

} // namespace
} // namespace gpuq::sim
