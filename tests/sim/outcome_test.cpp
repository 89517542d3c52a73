// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/read.h"
#include "sim/measure.h"
#include "sim/scenario.h"
#include "sim/simulate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

/// The figures that tests/bench/README.md states for policies/centre.yaml: the jobs of a real site
/// under the policy, compared with one plain queue on the same nodes.
namespace gpuq::sim {
namespace {

using namespace std::chrono_literals;

policy::Policy centre()
{
    std::ifstream file(GPUQ_POLICIES_DIR "/centre.yaml");
    std::ostringstream text;
    text << file.rdbuf();
    return policy::read_policy(text.str(), "centre.yaml")->policy;
}

Measures measured(const Result<Scenario>& scenario)
{
    const Course course = *simulate(scenario->machine, scenario->jobs);
    return measure(scenario->machine, scenario->jobs, course);
}

struct Expected {
    const char* name;
    UserModel user_model;
    double long_over_plain;
    double within_target;
};

class UserModelOutcome : public testing::TestWithParam<Expected> {};

TEST_P(UserModelOutcome, ShortRunsStartAndLongOnesHardlyWaitLonger)
{
    const auto trace = read_trace(GPUQ_TRACES_DIR "/philly_small_centre.csv.gz");
    ASSERT_TRUE(trace) << trace.error().text;
    const policy::Rules rules(centre());
    const Measures plain = measured(as_plain_queue(rules, *trace, GetParam().user_model));
    const Measures ruled = measured(under_policy(rules, *trace, GetParam().user_model));
    EXPECT_EQ(ruled.short_runs.runs, 17100U);
    EXPECT_EQ(ruled.short_runs.never + ruled.long_runs.never, 0U);
    EXPECT_GT(plain.short_runs.p95, 5h) << "the queue that people know";
    EXPECT_LE(ruled.short_runs.p95, 5min);
    EXPECT_GE(ruled.short_runs.within_target.value(), GetParam().within_target);
    EXPECT_LE(harm(plain.long_runs, ruled.long_runs), GetParam().long_over_plain);
    EXPECT_LE(ruled.idle_while_waiting, 0.06);
}

// The more runs can resume, the less long runs lose; the bound is weakest if none can.
INSTANTIATE_TEST_SUITE_P(
    UserModel, UserModelOutcome,
    testing::Values(Expected{"HonestAndNoneResumes", {}, 1.2, 0.998},
                    Expected{"HonestAndAllResume", {Declared::honestly, 100}, 1.0, 0.998},
                    Expected{"TheFewestSayHowLong", {Declared::rarely, 0}, 1.2, 0.998}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

} // namespace
} // namespace gpuq::sim
