// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/rules.h"

#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::embedded {
namespace {

using testing::Contains;
using testing::ElementsAre;

std::vector<std::vector<std::string>> commands(const std::string& queue)
{
    const auto reading = policy::read_policy(
        "version: 1\npools: {a: {nodes: n1, gpus: 4}}\nqueues:\n  q: {time: 2h, pools: a" + queue +
            "}\nfair_share: {shares: {lab: 5}}\n",
        "p");
    return accounting_commands(reading->policy, "local");
}

TEST(AccountingCommands, MakeLimitsAndGiveThemToEverybody)
{
    EXPECT_THAT(
        commands(", limits: {user: {soft_gpus: 2, gpus: 4, queued: 9}, job: {gpus: 3}}"),
        ElementsAre(ElementsAre("add", "account", "lab", "Description=lab", "Organization=local"),
                    ElementsAre("add", "qos", "gpuq_q"),
                    ElementsAre("modify", "qos", "gpuq_q", "set", "MaxTRESPU=gres/gpu=4",
                                "MaxSubmitJobsPU=9", "MaxTRESPerJob=gres/gpu=3"),
                    ElementsAre("add", "qos", "gpuq_q_soft"),
                    ElementsAre("modify", "qos", "gpuq_q_soft", "set", "MaxTRESPU=gres/gpu=2"),
                    ElementsAre("modify", "account", "where", "name=root", "cluster=local", "set",
                                "qos+=gpuq_q"),
                    ElementsAre("modify", "account", "where", "name=lab", "cluster=local", "set",
                                "fairshare=5")));
}

TEST(AccountingCommands, LetSlurmRefuseAtOnceOnlyWhereNoLimitIsSoft)
{
    EXPECT_THAT(commands(", limits: {user: {gpus: 4}}"),
                Contains(ElementsAre("modify", "qos", "gpuq_q", "set", "MaxTRESPU=gres/gpu=4",
                                     "Flags=DenyOnLimit")));
    EXPECT_THAT(commands(", limits: {user: {gpus: 4}, account: {soft_gpus: 2}}"),
                Contains(ElementsAre("modify", "qos", "gpuq_q", "set", "MaxTRESPU=gres/gpu=4")));
}

TEST(AccountingCommands, MakeTheAccountsThatMayReserve)
{
    const auto reading =
        policy::read_policy("version: 1\npools: {a: {nodes: n1, gpus: 4}}\nqueues: {q: {time: 2h, "
                            "pools: a}}\nreserve: {accounts: staff}\n",
                            "p");
    EXPECT_THAT(accounting_commands(reading->policy, "local"),
                Contains(ElementsAre("add", "account", "staff", "Description=staff",
                                     "Organization=local")));
}

TEST(AccountingCommands, GiveARestrictedQueueToItsPeopleAlone)
{
    const auto list = commands(", allow: {accounts: [lab, ml], users: ada}");
    EXPECT_THAT(list, Contains(ElementsAre("modify", "account", "where", "name=lab,ml",
                                           "cluster=local", "set", "qos+=gpuq_q")));
    EXPECT_THAT(list, Contains(ElementsAre("modify", "user", "where", "name=ada", "cluster=local",
                                           "set", "qos+=gpuq_q")));
    for (const auto& arguments : list) {
        EXPECT_THAT(arguments, testing::Not(Contains("name=root")));
    }
}

} // namespace
} // namespace gpuq::embedded
