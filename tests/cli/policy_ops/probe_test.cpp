// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/probe.h"

#include "cli/commands/verbs.h"
#include "cli/fake_services.h"
#include "govern/apply.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class PolicyProbe : public testing::Test {
protected:
    FakeServices m_services;

    /// Applies a policy with this probe for pool `vis` (nodes v1 and v2).
    void in_force(const std::string& probe)
    {
        (void)m_services.ruler.write(govern::k_applied,
                                     fmt::format("version: 1\n"
                                                 "pools:\n"
                                                 "  vis: {{nodes: 'v[1-2]', owner: vis,\n"
                                                 "        lend: {{probe: {}}}}}\n"
                                                 "  main: {{nodes: n1}}\n"
                                                 "queues:\n"
                                                 "  short: {{time: 2h, pools: [main, vis]}}\n"
                                                 "  vis: {{time: 12h, pools: vis}}\n",
                                                 probe));
    }

    Use probe(const std::string& node) { return use(k_policy_verb, m_services, {"probe", node}); }
};

TEST_F(PolicyProbe, SaysWhatTheProgramSays)
{
    in_force("/bin/true");
    EXPECT_EQ(probe("v2").out, "idle\n");
    in_force("[/bin/sh, -c, 'exit 3']");
    EXPECT_EQ(probe("v1").out, "busy: /bin/sh reports 3\n");
    EXPECT_EQ(probe("v1").status, 0);
}

TEST_F(PolicyProbe, TakesTheNodeFromSlurmd)
{
    in_force("/bin/true");
    m_services.variables["SLURMD_NODENAME"] = "v1";
    EXPECT_EQ(use(k_policy_verb, m_services, {"probe"}).out, "idle\n");
}

TEST_F(PolicyProbe, WhatCanNotBeAskedIsNotIdle)
{
    in_force("/no/such/program");
    const Use answer = probe("v1");
    EXPECT_THAT(answer.out, StartsWith("busy: "));
    EXPECT_THAT(answer.out, HasSubstr("/no/such/program"));
}

TEST_F(PolicyProbe, OtherNodesAreNotAsked)
{
    EXPECT_EQ(probe("v1").out, "no policy is in force\n");
    in_force("/bin/true");
    EXPECT_EQ(probe("n1").out, "no probe for node n1\n");
    EXPECT_EQ(probe("n1").status, 0);
}

} // namespace
} // namespace gpuq::cli
