// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/scenario.h"

#include "policy/read.h"
#include "sim/measure.h"
#include "sim/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string k_policy =
    "version: 1\n"
    "pools:\n"
    "  calib: {nodes: c1, gpus: 'k80:4'}\n"
    "  main: {nodes: 'm[1-2]', gpus: 'k80:4'}\n"
    "queues:\n"
    "  short: {time: 2h, default_time: 1h, pools: calib, overflow: main, limits: {user: "
    "{soft_gpus: 2}, job: {gpus: 4}}}\n"
    "  long: {time: 48h, pools: main, limits: {user: {gpus: 6}}, chain: {links: 30}}\n";

policy::Policy small_policy()
{
    return policy::read_policy(k_policy, "p")->policy;
}

Trace trace_of(std::vector<TraceJob> jobs)
{
    return {std::move(jobs), 0, 0};
}

TraceJob run(Seconds submit, Seconds duration, int gpus = 1, const std::string& user = "ada")
{
    TraceJob job;
    job.submit = submit;
    job.duration = duration;
    job.gpus = gpus;
    job.user = user;
    return job;
}

std::vector<std::string> partitions_of(const Scenario& scenario, std::size_t job)
{
    std::vector<std::string> names;
    for (const int index : scenario.jobs[job].partitions) {
        names.push_back(scenario.machine.partitions[static_cast<std::size_t>(index)].name);
    }
    return names;
}

TEST(Scenario, RoutesEveryRunAsThePolicyDoes)
{
    const policy::Rules rules(small_policy());
    const auto made = under_policy(
        rules, trace_of({run(0s, 90min), run(0s, 3h), run(0s, 1h, 6), run(0s, 90h)}), UserModel{});
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_THAT(partitions_of(*made, 0), ElementsAre("short", "short-more", "short-main"));
    EXPECT_EQ(made->jobs[0].limit, 90min);
    EXPECT_THAT(partitions_of(*made, 1), ElementsAre("long"));
    EXPECT_THAT(partitions_of(*made, 2), ElementsAre("long"));
    EXPECT_EQ(made->jobs[2].nodes, 2);
    EXPECT_EQ(made->jobs[3].limit, 48h);
    ASSERT_TRUE(made->jobs[3].chain);
    EXPECT_EQ(made->jobs[3].chain->limit, 48h);
    EXPECT_EQ(made->jobs[3].chain->asked, 90h);
    EXPECT_FALSE(made->jobs[0].chain);
    EXPECT_FALSE(made->jobs[1].chain) << "it fits, and nothing says that it can be resumed";
}

TEST(Scenario, ARequestedModelDecidesOnQueueAndNodes)
{
    const auto scenario = [](const std::string& pools, const std::string& model) {
        const policy::Rules rules(
            policy::read_policy("version: 1\npools: {" + pools +
                                    "}\nqueues:\n  big: {time: 24h, pools: p, models: p100}\n"
                                    "  small: {time: 48h, pools: k}\n",
                                "p")
                ->policy);
        std::vector<TraceJob> jobs{run(0s, 1h, 1)};
        jobs[0].model = model;
        return *under_policy(rules, trace_of(jobs), UserModel{});
    };
    const std::string plain = "k: {nodes: k1, gpus: 'k80:4'}, p: {nodes: p1, gpus: 'p100:4'}";
    EXPECT_THAT(partitions_of(scenario(plain, "k80"), 0), ElementsAre("small"));
    EXPECT_EQ(scenario(plain, "k80").jobs[0].model, "k80");
    EXPECT_THAT(partitions_of(scenario(plain, "p100"), 0), ElementsAre("big"));
    // The traces of other sites have models that a policy does not know.
    EXPECT_THAT(partitions_of(scenario(plain, "v100"), 0), partitions_of(scenario(plain, ""), 0));
    EXPECT_EQ(scenario(plain, "v100").jobs[0].model, "");
    const std::string mixed =
        "k: {nodes: k1, gpus: 'k80:2,p100:2'}, p: {nodes: p1, gpus: 'p100:4'}";
    EXPECT_EQ(scenario(mixed, "p100").jobs[0].model, "") << "a simulated node has one model";
}

TEST(Scenario, RunsAreRoutedByTheHoursOfTheirSubmission)
{
    const policy::Rules rules(
        policy::read_policy(
            "version: 1\n"
            "pools:\n"
            "  lab: {nodes: l1, gpus: 'k80:4', when: {from: \"20:00\", to: \"08:00\"}}\n"
            "  main: {nodes: m1, gpus: 'k80:4'}\n"
            "queues:\n"
            "  short:\n"
            "    time: 2h\n"
            "    pools: lab\n"
            "    calendar: [{when: {days: [sat, sun]}, time: 12h}]\n"
            "  long: {time: 48h, pools: main}\n",
            "p")
            ->policy);
    Trace trace = trace_of({run(0s, 3h), run(1h, 1h), run(12h, 1h), run(5 * 24h, 3h)});
    const auto made = under_policy(rules, trace, UserModel{});
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_THAT(partitions_of(*made, 0), ElementsAre("long"));
    EXPECT_THAT(partitions_of(*made, 1), ElementsAre("short"));
    EXPECT_THAT(partitions_of(*made, 3), ElementsAre("short")) << "on a Saturday";
    const auto course = simulate(made->machine, made->jobs);
    ASSERT_TRUE(course) << course.error().text;
    EXPECT_EQ(course->outcomes[1].start, 1h);
    EXPECT_EQ(course->outcomes[2].start, 20h) << "the pool is closed at noon";
    // From a Tuesday on, the last one is on a Sunday; from a Wednesday on, on a Monday.
    trace.clock = TraceClock::on_the_wall(TraceClock::k_monday + 2 * 24h);
    EXPECT_THAT(partitions_of(*under_policy(rules, trace, UserModel{}), 3), ElementsAre("long"));
    EXPECT_TRUE(as_plain_queue(rules, trace, UserModel{})->machine.changes.empty());
}

TEST(Scenario, SharesGoToTheQueuesThatGiveThem)
{
    const auto shared = policy::read_policy(
        "version: 1\n"
        "pools:\n"
        "  desks: {nodes: d1, gpus: 'a10:2', shares: {per_gpu: 4}}\n"
        "  main: {nodes: m1, gpus: 'k80:4'}\n"
        "queues:\n"
        "  lessons: {time: 2h, pools: desks, limits: {user: {shares: 2}, job: {gpus: 0}}}\n"
        "  long: {time: 48h, pools: main}\n",
        "p");
    ASSERT_TRUE(shared) << shared.error().text;
    const policy::Rules rules(shared->policy);
    TraceJob quarter = run(0s, 1h, 0);
    quarter.shares = 1;
    TraceJob too_much = quarter;
    too_much.shares = 3;
    const auto made =
        under_policy(rules, trace_of({quarter, quarter, quarter, too_much, run(0s, 1h)}), {});
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_THAT(partitions_of(*made, 0), ElementsAre("lessons"));
    EXPECT_THAT(partitions_of(*made, 3), ElementsAre("long"));
    ASSERT_EQ(made->refused.size(), 1U);
    EXPECT_THAT(made->refused.begin()->second, HasSubstr("share"));
    const auto course = simulate(made->machine, made->jobs);
    ASSERT_TRUE(course) << course.error().text;
    EXPECT_LT(course->outcomes[1].start, 10s);
    EXPECT_GE(course->outcomes[2].start, 1h); // two at a time
    // A plain queue has the same nodes.
    const auto plain = as_plain_queue(rules, trace_of({quarter, quarter, quarter}), {});
    ASSERT_TRUE(plain);
    EXPECT_LT(simulate(plain->machine, plain->jobs)->outcomes[2].start, 10s);
}

TEST(Scenario, CheckpointedRunsGoOn)
{
    const policy::Rules rules(small_policy());
    std::vector<TraceJob> jobs(100, run(0s, 3h));
    jobs.push_back(run(0s, 1h));
    for (const int percent : {0, 30, 100}) {
        const auto made =
            under_policy(rules, trace_of(jobs), UserModel{Declared::honestly, percent});
        const auto chains = std::count_if(made->jobs.begin(), made->jobs.end(),
                                          [](const Job& job) { return job.chain.has_value(); });
        EXPECT_EQ(chains, percent) << "of the hundred; a short run just begins again";
    }
}

TEST(Scenario, WhoStatesNoTimeBeginsShortAndGoesOnLong)
{
    const policy::Rules rules(small_policy());
    const auto made =
        under_policy(rules, trace_of({run(0s, 5h), run(0s, 10min)}), UserModel{Declared::rarely});
    ASSERT_TRUE(made);
    // The first of a thousand users states a time limit only for short runs.
    EXPECT_THAT(partitions_of(*made, 0), ElementsAre("short", "short-more", "short-main"));
    EXPECT_EQ(made->jobs[0].limit, 1h);
    ASSERT_TRUE(made->jobs[0].chain);
    EXPECT_EQ(made->jobs[0].chain->limit, 48h);
    const Course course = *simulate(made->machine, made->jobs);
    EXPECT_EQ(course.outcomes[0].ending, Ending::completed);
    EXPECT_EQ(course.outcomes[0].links, 2);
}

/// Simulates jobs under a policy with these queues on four GPUs.
Result<Scenario> under_queues(const std::string& queues, std::vector<TraceJob> jobs,
                              const UserModel& user_model = {})
{
    const policy::Rules rules(policy::read_policy("version: 1\npools:\n"
                                                  "  a: {nodes: n1, gpus: 'k80:4'}\nqueues:\n" +
                                                      queues,
                                                  "p")
                                  ->policy);
    return under_policy(rules, trace_of(std::move(jobs)), user_model);
}

TEST(Scenario, WhoMayUseALongerQueueIsInIt)
{
    TraceJob of_phys = run(0s, 30h);
    of_phys.account = "phys";
    of_phys.limit = 48h;
    TraceJob of_others = of_phys;
    of_others.account = "bio";
    const auto made = under_queues("  quick: {time: 2h, pools: a}\n"
                                   "  long: {time: 48h, pools: a, allow: {accounts: phys}}\n",
                                   {of_phys, of_others});
    ASSERT_TRUE(made) << made.error().text;
    ASSERT_EQ(made->jobs.size(), 1U);
    EXPECT_THAT(partitions_of(*made, 0), ElementsAre("long"));
    EXPECT_EQ(made->jobs[0].limit, 48h);
    EXPECT_FALSE(made->jobs[0].chain);
    EXPECT_THAT(made->refused.at(1), HasSubstr("queue quick takes at most 2 h"));
}

TEST(Scenario, GoesOnOnlyInQueuesWithChains)
{
    TraceJob long_one = run(0s, 28h);
    long_one.limit = 48h;
    const auto refused = under_queues("  q: {time: 2h, pools: a}\n", {long_one});
    ASSERT_EQ(refused->refused.size(), 1U);
    EXPECT_THAT(refused->refused.at(0), HasSubstr("queue q takes at most 2 h"));
    const auto chained =
        under_queues("  other: {time: 12h, pools: a}\n"
                     "  q: {time: 4h, pools: a, chain: {link: 3h}}\n"
                     "  few: {time: 8h, pools: a, chain: {links: 9}, allow: {users: ben}}\n",
                     {long_one});
    ASSERT_EQ(chained->jobs.size(), 1U) << chained->refused.at(0);
    EXPECT_THAT(partitions_of(*chained, 0), ElementsAre("q"));
    EXPECT_EQ(chained->jobs[0].limit, 3h);
    EXPECT_EQ(chained->jobs[0].chain->limit, 3h);
}

TEST(Scenario, WhoStatesNoTimeIsStoppedWhereNothingGoesOn)
{
    const auto made =
        under_queues("  q: {time: 2h, pools: a}\n", {run(0s, 5h)}, UserModel{Declared::rarely, 0});
    ASSERT_EQ(made->jobs.size(), 1U);
    EXPECT_FALSE(made->jobs[0].chain);
    EXPECT_EQ(simulate(made->machine, made->jobs)->outcomes[0].ending, Ending::timed_out);
}

TEST(Scenario, SaysWhyNotEvenALinkIsTaken)
{
    TraceJob wide = run(0s, 28h, 8);
    const auto made = under_queues("  q: {time: 2h, pools: a, limits: {job: {gpus: 4}}, "
                                   "chain: {links: 30}}\n",
                                   {wide});
    EXPECT_EQ(made->refused.at(0), "queue q gives a job at most 4 GPUs (p:5)");
}

TEST(Scenario, LimitsBindInTheSimulationToo)
{
    const policy::Rules rules(small_policy());
    std::vector<TraceJob> jobs(8, run(0s, 10h));
    const auto made = under_policy(rules, trace_of(jobs), UserModel{});
    const Course course = *simulate(made->machine, made->jobs);
    int at_once = 0;
    for (const Outcome& outcome : course.outcomes) {
        at_once += outcome.start < 1h ? 1 : 0;
    }
    EXPECT_EQ(at_once, 6) << "of eight, two GPUs being idle";
}

TEST(Scenario, EveryLimitOfAPolicyBinds)
{
    // Of the runs that start at once, and those refused: ada has two, the account lab three.
    struct Found {
        int at_once = 0;
        int refused = 0;
        bool operator==(const Found&) const = default;
    };
    const auto with = [](const std::string& limits) {
        const policy::Rules rules(
            policy::read_policy("version: 1\npools: {a: {nodes: n1, gpus: 'k80:4'}}\n"
                                "queues: {q: {time: 24h, pools: a, limits: " +
                                    limits + "}}\n",
                                "p")
                ->policy);
        std::vector<TraceJob> jobs;
        for (const auto& [user, account] : {std::pair("ada", "lab"), std::pair("ada", "lab"),
                                            std::pair("ben", "lab"), std::pair("cyd", "other")}) {
            jobs.push_back(run(0s, 1h, 1, user));
            jobs.back().limit = 1h;
            jobs.back().account = account;
        }
        const auto made = under_policy(rules, trace_of(jobs), UserModel{});
        const Course course = *simulate(made->machine, made->jobs);
        Found found;
        for (const Outcome& outcome : course.outcomes) {
            const bool is_refused = outcome.ending == Ending::refused;
            found.refused += is_refused ? 1 : 0;
            found.at_once += !is_refused && outcome.start < 10min ? 1 : 0;
        }
        return found;
    };
    EXPECT_EQ(with("{}"), (Found{4, 0}));
    EXPECT_EQ(with("{user: {jobs: 1}}"), (Found{3, 0}));
    EXPECT_EQ(with("{account: {jobs: 1}}"), (Found{2, 0}));
    EXPECT_EQ(with("{all: {jobs: 1}}"), (Found{1, 0}));
    EXPECT_EQ(with("{user: {queued: 1}}"), (Found{3, 1}));
    EXPECT_EQ(with("{account: {queued: 1}}"), (Found{2, 2}));
    EXPECT_EQ(with("{all: {queued: 1}}"), (Found{1, 3}));
    EXPECT_EQ(with("{user: {gpu_hours_ahead: 1}}"), (Found{3, 0}));
    EXPECT_EQ(with("{account: {gpu_hours_ahead: 1}}"), (Found{2, 0}));
    EXPECT_EQ(with("{all: {gpu_hours_ahead: 1}}"), (Found{1, 0}));
}

TEST(Scenario, ASoftLimitLetsOthersInFirst)
{
    const policy::Rules rules(small_policy());
    std::vector<TraceJob> jobs;
    for (int i = 0; i < 30; ++i) {
        jobs.push_back(run(0s, 1h, 1, "ada"));
    }
    jobs.push_back(run(60s, 1h, 1, "ben"));
    const auto made = under_policy(rules, trace_of(jobs), UserModel{});
    const Course course = *simulate(made->machine, made->jobs);
    const Outcome& ben = course.outcomes.back();
    int before = 0;
    for (std::size_t i = 0; i < 30; ++i) {
        before += course.outcomes[i].start < ben.start ? 1 : 0;
    }
    EXPECT_EQ(before, 12) << "those that found free GPUs before ben came";
}

TEST(Scenario, APlainQueueHasTheSameNodes)
{
    const policy::Rules rules(small_policy());
    const auto made = as_plain_queue(rules, trace_of({run(0s, 90h)}), UserModel{});
    ASSERT_TRUE(made);
    EXPECT_EQ(made->machine.nodes.size(), 3U);
    EXPECT_EQ(made->machine.partitions.size(), 1U);
    EXPECT_EQ(simulate(made->machine, made->jobs)->outcomes[0].ending, Ending::completed);
}

TEST(Scenario, RefusedRunsAreCounted)
{
    const policy::Rules rules(small_policy());
    const auto made = under_policy(rules, trace_of({run(0s, 1h, 1), run(0s, 1h, 64)}), UserModel{});
    EXPECT_EQ(made->jobs.size() + made->refused.size(), 2U);
}

TEST(Scenario, NodesHaveToBeKnown)
{
    const policy::Rules rules(policy::read_policy("version: 1\npools: {a: {nodes: ALL}}\n"
                                                  "queues: {q: {time: 1h, pools: a}}\n",
                                                  "p")
                                  ->policy);
    EXPECT_THAT(under_policy(rules, {}, UserModel{}).error().text,
                HasSubstr("pool a must specify its nodes"));
}

} // namespace
} // namespace gpuq::sim
