// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_apply.h"

#include "cli/fake_doors.h"
#include "cli/policy_verb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using testing::HasSubstr;

const std::string k_policy = "version: 1\n"
                             "pools:\n"
                             "  all: {nodes: 'n[1-2]', gpus: 'k80:4'}\n"
                             "queues:\n"
                             "  short: {time: 2h, pools: all, limits: {user: {gpus: 2}}}\n";

class PolicyApply : public testing::Test {
protected:
    FakeDoors m_doors;

    PolicyApply()
    {
        m_doors.files["p.yaml"] = {k_policy, 0, 0644};
        m_doors.ruler.nodes = {"n1", "n2"};
        m_doors.ruler.site_settings = {{"AccountingStorageEnforce", "associations,limits,qos,safe"},
                                       {"AccountingStorageTRES", "gres/gpu"},
                                       {"JobSubmitPlugins", "lua"},
                                       {"SchedulerParameters", "bf_continue,bf_one_resv_per_job,preempt_youngest_first"}};
        m_doors.ruler.settings = m_doors.ruler.site_settings;
    }

    Use policy(const std::vector<std::string>& words, Globals globals = {})
    {
        return use(k_policy_verb, m_doors, words, std::move(globals));
    }
};

TEST_F(PolicyApply, PlansAppliesAndFindsWhatWasChangedByHand)
{
    const Use plan = policy({"plan", "p.yaml"});
    EXPECT_EQ(plan.status, 10) << plan.err;
    EXPECT_THAT(plan.out, HasSubstr("create partition short (line 5): loosens\n"));
    EXPECT_THAT(plan.out, HasSubstr("    MaxTRESPU: gres/gpu=2\n"));
    EXPECT_EQ(m_doors.ruler.changes, 0);

    const Use apply = policy({"apply", "p.yaml"});
    EXPECT_EQ(apply.status, 0) << apply.err;
    EXPECT_THAT(apply.err, HasSubstr("the policy is in force"));
    EXPECT_EQ(policy({"plan", "p.yaml"}).out, "nothing to do\n");
    EXPECT_EQ(policy({"drift"}).status, 0);

    m_doors.ruler.qos["gpuq_short"].fields["MaxTRESPU"] = "gres/gpu=\x1b[7m3";
    const Use drift = policy({"drift"});
    EXPECT_EQ(drift.status, 10);
    EXPECT_THAT(drift.out, HasSubstr("    MaxTRESPU: gres/gpu=^[[7m3 -> gres/gpu=2\n"));
    Globals json;
    json.json = true;
    EXPECT_THAT(policy({"drift"}, json).out, HasSubstr("\"kind\": \"qos\""));
}

TEST_F(PolicyApply, SaysWhatTheSiteHasToDoFirst)
{
    m_doors.ruler.settings["JobSubmitPlugins"] = "";
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

} // namespace
} // namespace gpuq::cli
