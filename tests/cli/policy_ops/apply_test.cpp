// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/apply.h"

#include "cli/commands/verbs.h"
#include "cli/fake_services.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using testing::HasSubstr;

const std::string k_two_gpus_a_user =
    "version: 1\n"
    "pools:\n"
    "  all: {nodes: 'n[1-2]', gpus: 'k80:4'}\n"
    "queues:\n"
    "  short: {time: 2h, pools: all, limits: {user: {gpus: 2}}}\n";

class PolicyApply : public testing::Test {
protected:
    FakeServices m_services;

    PolicyApply()
    {
        m_services.files["p.yaml"] = {k_two_gpus_a_user, 0, 0644};
        m_services.ruler.nodes = {"n1", "n2"};
        m_services.ruler.site_settings = {
            {"AccountingStorageEnforce", "associations,limits,qos,safe"},
            {"AccountingStorageTRES", "gres/gpu"},
            {"JobSubmitPlugins", "lua"},
            {"PriorityType", "priority/multifactor"},
            {"SchedulerParameters", "bf_continue,bf_one_resv_per_job,preempt_youngest_first"}};
        m_services.ruler.settings = m_services.ruler.site_settings;
    }

    Use policy(const std::vector<std::string>& arguments, Globals globals = {})
    {
        return use(k_policy_verb, m_services, arguments, std::move(globals));
    }
};

TEST_F(PolicyApply, PlansAppliesAndFindsWhatWasChangedByHand)
{
    const Use plan = policy({"plan", "p.yaml"});
    EXPECT_EQ(plan.status, 10) << plan.err;
    EXPECT_THAT(plan.out, HasSubstr("create partition short (line 5): loosens\n"));
    EXPECT_THAT(plan.out, HasSubstr("    MaxTRESPU: gres/gpu=2\n"));
    EXPECT_EQ(m_services.ruler.changes, 0);

    const Use apply = policy({"apply", "p.yaml"});
    EXPECT_EQ(apply.status, 0) << apply.err;
    EXPECT_THAT(apply.err, HasSubstr("the policy is in force"));
    EXPECT_EQ(policy({"plan", "p.yaml"}).out, "nothing to do\n");
    EXPECT_EQ(policy({"drift"}).status, 0);

    m_services.ruler.limits = {{"lab", "MaxJobs=7"}};
    EXPECT_EQ(policy({"drift"}).status, 0);
    EXPECT_EQ(policy({"drift"}).out,
              "note: in addition to the policy, Slurm's accounting limits lab by "
              "MaxJobs=7 (sacctmgr show assoc)\nnothing to do\n");

    m_services.ruler.qos["gpuq_short"].fields["MaxTRESPU"] = "gres/gpu=\x1b[7m3";
    const Use drift = policy({"drift"});
    EXPECT_EQ(drift.status, 10);
    EXPECT_THAT(drift.out, HasSubstr("    MaxTRESPU: gres/gpu=^[[7m3 -> gres/gpu=2\n"));
    Globals json;
    json.json = true;
    EXPECT_THAT(policy({"drift"}, json).out, HasSubstr("\"kind\": \"qos\""));
}

TEST_F(PolicyApply, SaysWhatTheSiteHasToDoFirst)
{
    m_services.ruler.settings["JobSubmitPlugins"] = "";
    const Use plan = policy({"plan", "p.yaml"});
    EXPECT_EQ(plan.status, 10);
    EXPECT_THAT(plan.out, HasSubstr("before it can be applied: /etc/slurm/slurm.conf: "
                                    "JobSubmitPlugins needs lua too"));
    EXPECT_EQ(policy({"apply", "p.yaml"}).status, 121);
}

TEST_F(PolicyApply, RollbackAndDriftAreAboutThePolicyInForce)
{
    EXPECT_EQ(policy({"drift", "p.yaml"}).status, 2);
    EXPECT_EQ(policy({"rollback", "p.yaml"}).status, 2);
    EXPECT_THAT(policy({"drift"}).err, HasSubstr("no policy is in force"));
    EXPECT_THAT(policy({"rollback"}).err, HasSubstr("no policy before"));
}

/// Accounting records: `count` one-hour jobs of one user on four of the eight GPUs, and one job of
/// another user on all eight.
std::string accounted(int count)
{
    std::string text = "Submit|JobID|User|Account|Start|Elapsed|Timelimit|ReqTRES\n";
    for (int i = 0; i < count; ++i) {
        text += fmt::format("2026-11-20T10:00:00|{}|ada|lab|2026-11-20T10:00:05|01:00:00|01:00:00|"
                            "gres/gpu=4\n",
                            i + 1);
    }
    return text + "2026-11-20T10:00:00|99|b\x1b|lab|2026-11-20T10:00:05|00:10:00|01:00:00|"
                  "gres/gpu=8\n";
}

TEST_F(PolicyApply, PlanShowsWhatTheChangeMeansForJobs)
{
    const std::string loose = "version: 1\n"
                              "pools:\n"
                              "  all: {nodes: 'n[1-2]', gpus: 'k80:4'}\n"
                              "queues:\n"
                              "  short: {time: 2h, pools: all, limits: {job: {gpus: 4}},\n"
                              "    wait: {p50: 1h, max: 90m}}\n";
    m_services.files["p.yaml"].text = loose;
    m_services.accounted = accounted(3);
    const Use first = policy({"plan", "--from-accounting", "14d", "p.yaml"});
    EXPECT_EQ(first.status, 10) << first.err;
    EXPECT_THAT(first.out, HasSubstr("plain queue"));
    EXPECT_THAT(first.out,
                HasSubstr("1 run would be refused that is taken now:\n"
                          "    job 99 of b^[ (lab): 8 GPUs, limit 1 h: queue short gives a job "
                          "at most 4 GPUs (p.yaml:5)\n"));
    ASSERT_EQ(policy({"apply", "p.yaml"}).status, 0);

    const Use same = policy({"plan", "--from-accounting", "14d", "p.yaml"});
    EXPECT_EQ(same.status, 0) << same.out;
    EXPECT_THAT(same.out, HasSubstr("policy in force"));
    EXPECT_THAT(same.out, testing::Not(HasSubstr("would be refused")));

    m_services.accounted = accounted(6);
    const Use broken = policy({"plan", "--from-accounting", "14d", "p.yaml"});
    EXPECT_EQ(broken.status, 11) << broken.out;
    EXPECT_THAT(broken.out, HasSubstr("nothing to do\n"));
    EXPECT_THAT(
        broken.out,
        testing::ContainsRegex(
            "p.yaml:6: queue short: no run should wait longer than 1 h 30 min; it would be 2 h"));

    // A broken wait target takes precedence over a change.
    m_services.ruler.qos["gpuq_short"].fields["MaxTRESPU"] = "gres/gpu=3";
    Globals json;
    json.json = true;
    const Use both = policy({"plan", "--from-accounting", "14d", "p.yaml"}, json);
    EXPECT_EQ(both.status, 11) << both.out;
    EXPECT_THAT(both.out, HasSubstr("\"broken_targets\""));
    EXPECT_EQ(policy({"plan", "p.yaml"}).status, 10);
}

} // namespace
} // namespace gpuq::cli
