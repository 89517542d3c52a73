// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/state.h"

#include <gtest/gtest.h>

namespace gpuq::embedded {
namespace {

State some_state()
{
    State state;
    state.spec.name = "lab";
    state.spec.nodes = 2;
    state.spec.gpus = {{"k80", "/dev/tty0"}, {"", "/dev/tty1"}};
    state.spec.stand_ins = true;
    state.spec.shards = 4;
    state.spec.topology = "Boards=1 SocketsPerBoard=2";
    state.spec.confinement = Confinement::cgroups;
    state.spec.cgroup_plugin = "cgroup/v1";
    state.spec.slurm_release = "24.11";
    state.spec.extra_lines = {"KillWait=5", "MaxJobCount=20000"};
    state.spec.named = {{"gpu01", {{"k80", "/dev/tty0"}, {"", "/dev/tty1"}}, 1, "", 2},
                        {"cpu01", {}, 1, "CPUs=4 Feature=a b"}};
    state.spec.conf_lines = {"PartitionName=a Nodes=ALL", "NodeSet=x Feature=y"};
    state.spec.conf_qos = {"long", "a b"};
    state.spec.policy = true;
    state.spec.accounting = false;
    state.accounting_failure = "slurmdbd failed: no plugin";
    state.ports = {20001, 20002, {20003, 20004}};
    state.run = "/tmp/gpuq-cluster-abc";
    state.boot = "b0";
    state.started_at = 1700000000;
    state.up = true;
    state.daemons = {{"munged", {12, 345}}, {"slurmd-n0", {13, 346}}};
    return state;
}

TEST(State, ComesBackAsItWasWritten)
{
    const auto read = parse_state(to_text(some_state()));
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(*read, some_state());
}

TEST(State, OfNothingComesBackToo)
{
    const auto read = parse_state(to_text(State{}));
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(*read, State{});
}

TEST(State, NamesTheLineItDoesNotUnderstand)
{
    for (const char* text :
         {"", "gpuq-cluster 2\n", "nonsense", "gpuq-cluster 1\nnodes two\n",
          "gpuq-cluster 1\nnodes 2x\n", "gpuq-cluster 1\nnosuch 1\n", "gpuq-cluster 1\nup maybe\n",
          "gpuq-cluster 1\ndaemon munged\n", "gpuq-cluster 1\ndaemon munged 1 x\n",
          "gpuq-cluster 1\nnode-gpu /dev/tty0\n", "gpuq-cluster 1\nnode-attributes CPUs=1\n",
          "gpuq-cluster 1\nnode-shards 4\n", "gpuq-cluster 1\nshards x\n",
          "gpuq-cluster 1\npolicy maybe\n", "gpuq-cluster 1\ngpu \n",
          "gpuq-cluster 1\nnodes 99999999999\n"}) {
        EXPECT_FALSE(parse_state(text)) << text;
    }
    EXPECT_EQ(parse_state("gpuq-cluster 1\nnodes two\n").error().text, "invalid line 2");
}

TEST(State, OfATornFileIsRefusedNotGuessed)
{
    const std::string whole = to_text(some_state());
    const std::string torn = whole.substr(0, whole.find("node-port") + 4);
    EXPECT_FALSE(parse_state(torn));
}

} // namespace
} // namespace gpuq::embedded
