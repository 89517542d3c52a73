// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/json_page.h"
#include "cli/policy_ops/apply.h"
#include "cli/policy_ops/import.h"
#include "cli/policy_ops/policy_text.h"
#include "cli/policy_ops/tuning_text.h"
#include "cli/render/comparison_text.h"
#include "cli/render/credentials_text.h"
#include "cli/render/free_table.h"
#include "cli/render/grants_text.h"
#include "cli/render/listening_document.h"
#include "cli/render/plain_show.h"
#include "cli/render/profile_text.h"
#include "cli/render/reservation_text.h"
#include "cli/render/run_table.h"
#include "cli/render/show_text.h"
#include "cli/render/simulation_text.h"
#include "cli/render/sweep_table.h"
#include "cli/render/targets_text.h"
#include "cli/render/top_picture.h"
#include "cli/render/usage_text.h"
#include "cli/render/why_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <variant>

/// Checks that gpuq-json(5) and the documents list exactly the same members.
namespace gpuq::cli {
namespace {

using report::Json;
using Keys = std::set<std::string>;

/// Keys of members at any depth. The members below a name in `apart` are skipped: they have a
/// section of their own.
void collect(const Json::Members& members, const Keys& apart, Keys& names);

void collect(const Json& json, const Keys& apart, Keys& names)
{
    if (const auto* members = std::get_if<Json::Members>(&json.value())) {
        collect(*members, apart, names);
    } else if (const auto* elements = std::get_if<Json::Elements>(&json.value())) {
        for (const Json& element : *elements) {
            collect(element, apart, names);
        }
    }
}

void collect(const Json::Members& members, const Keys& apart, Keys& names)
{
    for (const auto& [name, member] : members) {
        names.insert(name);
        if (!apart.contains(name)) {
            collect(member, apart, names);
        }
    }
}

Keys members_of(const Json::Members& document, const Keys& apart = {})
{
    Keys names;
    collect(document, apart, names);
    return names;
}

RunStatus some_status()
{
    RunStatus status{RunKey::make(Time(), {1, 2, 3, 4, 5, 6, 7, 8})};
    status.run = Run{status.key};
    return status;
}

TEST(JsonPage, TellsOfEveryMemberAndOfNoOther)
{
    RunStatuses statuses;
    statuses.runs.push_back(some_status());
    auto list = run_list(statuses, {}, Time());
    SweepStatus sweep{{"cal", {"lr"}, {}, 1, {}, {some_status().key}}, {}, {}, {}, {}, {}};
    sweep.sweep.propose.emplace().command = {"search.py"};
    sweep.tries.push_back({{"1e-4"}, sweeps::Try::State::ended});
    sweep.tries.back().end.emplace().evidence.emplace();
    add_sweeps(list, {line_of(sweep, Time())});
    EXPECT_EQ(documented_in("gpuq ls"), members_of(list, {"runs", "sweeps", "warnings"}));
    EXPECT_EQ(documented_in("gpuq show of a sweep"),
              members_of(sweep_document(sweep, 1, CodeFacts{}, Time()), {"values", "code"}));
    Keys run;
    RunStatus shared = some_status();
    shared.run->request.gpus.share.emplace();
    collect(run_json(shared, Time()), {}, run);
    EXPECT_EQ(documented_in("A run"), run);

    FreeGpus free;
    free.partitions.resize(1);
    free.pools.resize(1);
    free.pools[0].shares.emplace();
    free.next.emplace(1);
    free.next->front().share.emplace();
    free.waiting.emplace();
    free.own_waiting.resize(1);
    free.reserved.emplace();
    free.request.emplace();
    EXPECT_EQ(documented_in("gpuq free"), members_of(free_document(free, Time())));

    const std::vector<ReservedGpus> reserved(1);
    Keys reservation;
    collect(reservations_json(reserved, Time()), {}, reservation);
    EXPECT_EQ(documented_in("A reservation"), reservation);
    EXPECT_EQ(documented_in("gpuq reserve"),
              members_of(reservation_document(reserved, Time()), {"reservations"}));

    TopFound top;
    top.overview.pools.resize(1);
    top.runs.push_back(some_status());
    EXPECT_EQ(documented_in("gpuq top"), members_of(top_document(top, Time()), {"run"}));

    const Why why{some_status(), {}, {Advice{}}, {}, {"silent"}, {}, {}};
    EXPECT_EQ(documented_in("gpuq why"), members_of(why_document(why, Time()), {"run"}));

    WholeRun whole{some_status(), {Event{}}, {}, {}, {}, {}};
    whole.training.training.progress = telemetry::Progress{"epoch", 1, 2};
    whole.training.training.curves.add("loss", {1, {}, 0.5});
    whole.training.alarms.resize(1);
    whole.samples = {{{Time(), "n", {GpuName{}}}, Sample{}}};
    whole.samples[0].newest->gpus.resize(1);
    whole.idle = {Exemption{}, IdleFinding{}};
    whole.credentials = CredentialRecords{};
    whole.code.emplace();
    EXPECT_EQ(documented_in("gpuq show"), members_of(show_document(whole, Time()), {"run"}));

    RunToCompare compared{some_status(), {}, {}};
    compared.training.source = "a";
    compared.training.curves.add("loss", {1, {}, 0.5});
    RunToCompare other = compared;
    other.status.run->request.nodes = 2;
    EXPECT_EQ(
        documented_in("gpuq show \\-\\-compare"),
        members_of(comparison_document({compare({compared, other}, Time()), {"silent"}}, Time()),
                   {"run"}));

    RunStatus plain = some_status();
    plain.plain.emplace();
    EXPECT_EQ(documented_in("gpuq show of a plain job"),
              members_of(plain_document(plain, Time()), {"run"}));

    EXPECT_EQ(documented_in("gpuq keepalive"),
              members_of(keepalive_document({{some_status(), {}}}, Time())));

    EXPECT_EQ(documented_in("gpuq notebook"), members_of(notebook_document({}, "", JobId{1})));
    EXPECT_EQ(documented_in("gpuq tensorboard"), members_of(tensorboard_document({}, {"last"})));
    EXPECT_EQ(documented_in("gpuq forward"), members_of(forward_document({{1, "2"}}, "")));

    const GpuUse use{Time(),
                     Time(),
                     {UseBy::user, UseBy::account, UseBy::lab, UseBy::queue, UseBy::model},
                     {UseRow{{"a", "b", "c", "d", "e"}, 1, 1}},
                     {},
                     {UseAdvice{}}};
    EXPECT_EQ(documented_in("gpuq usage"), members_of(usage_document(use)));
    TargetResults target_results;
    target_results.queues.resize(1);
    target_results.queues[0].models.resize(1);
    target_results.queues[0].targets.resize(1);
    EXPECT_EQ(documented_in("gpuq usage \\-\\-targets"),
              members_of(targets_document(target_results)));
}

TEST(JsonMan, TellsWhatPolicyHas)
{
    EXPECT_EQ(documented_in("gpuq policy check"),
              members_of(check_document({policy::Finding{}}, "p")));
    policy::Policy policy;
    policy.queues.push_back({});
    policy.queues[0].name = "q";
    policy.courses.push_back({});
    const policy::Rules rules(policy);
    Explanation explanation;
    explanation.verdict.queue = "q";
    EXPECT_EQ(documented_in("gpuq policy explain"),
              members_of(explain_document(rules, explanation)));
    govern::Plan plan;
    plan.changes.push_back({});
    plan.changes[0].fields.push_back({});
    EXPECT_EQ(documented_in("gpuq policy import"), members_of(import_document({})));
    PlanSimulation planned{"t", {}, "p", {Simulated{}}, {RefusedRun{}}};
    planned.all[0].broken.emplace_back();
    EXPECT_EQ(documented_in("gpuq policy plan"),
              members_of(plan_document(plan, &planned), {"courses"}));
    Simulated simulated;
    simulated.refused.emplace(0, "why");
    simulated.broken.emplace_back();
    simulated.measures.partitions.emplace_back();
    simulated.measures.users.emplace_back();
    EXPECT_EQ(documented_in("gpuq policy simulate"),
              members_of(simulation_document({simulated}, "t", {})));
    tune::Problem problem;
    problem.goals = {{"q", 95, std::chrono::minutes{5}}};
    problem.searched = {{{}}, {{}}, 0};
    problem.unseen = problem.searched;
    problem.numbers.all = {{"queues.q.time", 1, 1, {"1h", "2h"}, 0}};
    TuningReport tuned;
    tuned.problem = &problem;
    tuned.tuning.choices = {{"", {{"queues.q.time", 1, "1h", "2h"}}, {{}}, {{}}, {1}, {0}}};
    tuned.demands.emplace_back();
    tuned.impossible.emplace_back();
    tuned.impossible[0].goal = problem.goals[0];
    EXPECT_EQ(documented_in("gpuq policy tune"), members_of(tuning_document(tuned)));
    TestReport report;
    const policy::Case test;
    report.cases.results.push_back({&test, true, ""});
    report.cases.rules.push_back({});
    EXPECT_EQ(documented_in("gpuq policy test"), members_of(test_document(report)));
}

TEST(JsonMan, TellsWhatProfileHas)
{
    WholeProfile whole{some_status(), {}, {}, {}, {}};
    whole.status.run->request.memory_mib = 64 << 10;
    const Time end = Time() + std::chrono::hours(1);
    whole.profile = telemetry::Profiler({{LinkNumber{1}, Time(), end, {}, {}}}, 1).take();
    whole.profile->gpus.resize(1);
    whole.profile->nodes.resize(1);
    whole.profile->all[static_cast<std::size_t>(telemetry::Measure::ram)].add(1, 3600);
    EXPECT_EQ(documented_in("gpuq profile"),
              members_of(profile_document(whole, end), {"run", "progress", "training"}));
}

TEST(JsonMan, TellsWhatUsageLeftHas)
{
    const GrantsLeft left{"ada", {{"lab", true, {{"lab", {}, {}}}}}};
    EXPECT_EQ(documented_in("gpuq usage \\-\\-left"), members_of(grants_document(left)));
}

} // namespace
} // namespace gpuq::cli
