// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/plan.h"

#include "embedded/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::embedded {
namespace {

using testing::HasSubstr;

MachineFacts small_machine()
{
    MachineFacts machine;
    machine.cores = 2;
    machine.memory_mib = 8000;
    machine.user = "ada";
    return machine;
}

std::vector<GpuDevice> stand_ins(int count, const std::string& model = "k80")
{
    std::vector<GpuDevice> gpus;
    for (int index = 0; index < count; ++index) {
        gpus.push_back({model, "/dev/tty" + std::to_string(index)});
    }
    return gpus;
}

Wishes wishing(int gpus)
{
    Wishes wishes;
    wishes.gpus = gpus;
    return wishes;
}

TEST(NodesOfPolicy, HaveTheNamesAndGpusOfItsPools)
{
    const auto nodes =
        nodes_of_policy("version: 1\npools:\n  a: {nodes: 'g[1-2]', gpus: 'k80:2,p100:1'}\n"
                        "  b: {nodes: v1, gpus: 1}\n"
                        "queues: {q: {time: 2h, pools: [a, b], per_gpu: {cpus: 4, memory: 8G}}}\n");
    ASSERT_TRUE(nodes) << nodes.error().text;
    ClusterSpec spec;
    use_pools(spec, *nodes, stand_ins(3, ""));
    const std::vector<GpuDevice> three{
        {"k80", "/dev/tty0"}, {"k80", "/dev/tty1"}, {"p100", "/dev/tty2"}};
    EXPECT_EQ(spec.named,
              (std::vector<NamedNode>{{"g1", three}, {"g2", three}, {"v1", {{"", "/dev/tty0"}}}}));
    EXPECT_EQ(spec.nodes, 3);
    EXPECT_EQ(spec.node(2), "v1");
    EXPECT_EQ(spec.gpus_on("g2"), 3U);
    EXPECT_GE(spec.cpus, 12);
    EXPECT_GE(spec.memory_mib, 3U * 8 * 1024);
    EXPECT_EQ(describe(spec), "3 nodes of its policy with 7 GPUs (simulated)");
    spec.named = {{"g1", {three[0]}}};
    EXPECT_EQ(describe(spec), "1 node of its policy with 1 GPU (simulated)");
}

TEST(NodesOfPolicy, HaveTheSharesOfTheirPoolOrThoseOfTheOption)
{
    const auto nodes = nodes_of_policy(
        "version: 1\npools:\n  a: {nodes: g1, gpus: 'a10:1', shares: {per_gpu: 4}}\n"
        "  b: {nodes: v1, gpus: 'a10:1'}\nqueues: {q: {time: 2h, pools: [a, b]}}\n");
    ASSERT_TRUE(nodes) << nodes.error().text;
    ClusterSpec spec;
    use_pools(spec, *nodes, stand_ins(1, ""));
    EXPECT_EQ(spec.shards_of(0), 4);
    EXPECT_EQ(spec.shards_of(1), 0);
    ClusterSpec with_option;
    with_option.shards = 2;
    use_pools(with_option, *nodes, stand_ins(1, ""));
    EXPECT_EQ(with_option.shards_of(0), 4);
    EXPECT_EQ(with_option.shards_of(1), 2);
}

TEST(NodesOfPolicy, HaveToBeKnownUnlessTheyAreAllNodes)
{
    EXPECT_TRUE(nodes_of_policy("version: 1\npools: {a: {nodes: ALL}}\n"
                                "queues: {q: {time: 2h, pools: a}}\n")
                    ->pools.empty());
    EXPECT_THAT(nodes_of_policy("version: 1\npools: {a: {nodes: n1}}\n"
                                "queues: {q: {time: 2h, pools: a}}\n")
                    .error()
                    .text,
                HasSubstr("pool a does not specify the GPUs"));
    EXPECT_THAT(nodes_of_policy("version: 1\npools: {a: {nodes: 'n[1-65]', gpus: 1}}\n"
                                "queues: {q: {time: 2h, pools: a}}\n")
                    .error()
                    .text,
                HasSubstr("65 nodes; one machine can simulate at most 64"));
    EXPECT_FALSE(nodes_of_policy("version: 1\n"));
}

TEST(Plan, GivesAStandInNodeEnoughForAllItsGpusAtOnce)
{
    Wishes wishes = wishing(64);
    wishes.nodes = 4;
    const auto spec = plan(wishes, small_machine(), stand_ins(64));
    ASSERT_TRUE(spec) << spec.error().text;
    EXPECT_GT(spec->cpus, 64); // one CPU per GPU, and some without a GPU
    EXPECT_GE(spec->memory_mib, 64U * 1024U);
    EXPECT_TRUE(spec->stand_ins);
    EXPECT_EQ(describe(*spec), "4 nodes with 64 GPUs each (k80, simulated)");
}

TEST(Plan, GivesAStandInNodeACpuForEachShare)
{
    Wishes wishes = wishing(2);
    wishes.shards = 4;
    const auto spec = plan(wishes, small_machine(), stand_ins(2));
    ASSERT_TRUE(spec) << spec.error().text;
    EXPECT_GT(spec->cpus, 8); // else jobs wait although shares are free
}

TEST(Plan, OfRealGpusIsTheMachineAsItIs)
{
    MachineFacts machine = small_machine();
    machine.gpus = {{"h200", "/dev/nvidia0"}};
    machine.topology = "Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1";
    const auto spec = plan({}, machine, {});
    ASSERT_TRUE(spec) << spec.error().text;
    EXPECT_EQ(spec->cpus, 2);
    EXPECT_EQ(spec->memory_mib, 8000U);
    EXPECT_EQ(spec->topology, machine.topology);
    EXPECT_EQ(describe(*spec), "1 node with 1 GPU (h200)");
}

TEST(Plan, SaysHowToGoOnWithoutGpus)
{
    const auto spec = plan({}, small_machine(), {});
    ASSERT_FALSE(spec);
    EXPECT_EQ(spec.error().kind, Error::Kind::missing);
    EXPECT_THAT(spec.error().text, HasSubstr("--gpus 4"));
}

TEST(Plan, RefusesWhatSlurmWouldMisread)
{
    const auto refused = [](auto change) {
        Wishes wishes = wishing(1);
        change(wishes);
        const auto spec = plan(wishes, small_machine(), stand_ins(1));
        return !spec && spec.error().kind == Error::Kind::usage;
    };
    EXPECT_TRUE(refused([](Wishes& wishes) { wishes.name = "a b"; }));
    EXPECT_TRUE(refused([](Wishes& wishes) { wishes.name = ""; }));
    EXPECT_TRUE(refused([](Wishes& wishes) { wishes.model = "k80 File=/etc/passwd"; }));
    EXPECT_TRUE(refused([](Wishes& wishes) { wishes.node_prefix = "n1"; }));
    EXPECT_TRUE(refused([](Wishes& wishes) { wishes.nodes = 65; }));
    EXPECT_TRUE(refused([](Wishes& wishes) { wishes.extra_lines = {"A=1\nB=2"}; }));
    EXPECT_TRUE(refused([](Wishes& wishes) { wishes.confinement = Confinement::cgroups; }));
    EXPECT_FALSE(refused([](Wishes&) {}));
}

TEST(Merge, OfNothingAsksForTheSameAgain)
{
    Wishes wishes = wishing(2);
    wishes.nodes = 2;
    wishes.model = "k80";
    wishes.name = "lab";
    wishes.extra_lines = {"KillWait=5"};
    const auto first = plan(wishes, small_machine(), stand_ins(2));
    ASSERT_TRUE(first) << first.error().text;
    const auto again = plan(merge({}, *first), small_machine(), stand_ins(2));
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(*again, *first);
}

TEST(Merge, LetsAWishWin)
{
    ClusterSpec former;
    former.stand_ins = true;
    former.gpus = stand_ins(2);
    former.extra_lines = {"KillWait=5"};
    Wishes wishes = wishing(8);
    wishes.extra_lines = {"KillWait=9"};
    const Wishes merged = merge(wishes, former);
    EXPECT_EQ(merged.gpus, 8);
    EXPECT_EQ(merged.model, "k80");
    EXPECT_EQ(merged.extra_lines, std::vector<std::string>{"KillWait=9"});
}

TEST(Model, BecomesATypeOfSlurm)
{
    EXPECT_EQ(gres_type("Tesla K80"), "k80");
    EXPECT_EQ(gres_type("NVIDIA GeForce RTX 3090"), "rtx_3090");
    EXPECT_EQ(gres_type("NVIDIA A100-SXM4-40GB"), "a100-sxm4-40gb");
    EXPECT_EQ(gres_type("Odd:Name,\n"), "odd_name__");
}

TEST(Model, IsReadFromTheDriver)
{
    const char* text = "Model: \t\t Tesla K80\nIRQ:   \t\t 35\nDevice Minor: \t 3\n";
    EXPECT_EQ(model_in(text), "Tesla K80");
    EXPECT_EQ(minor_in(text), 3);
    EXPECT_EQ(model_in("nothing"), "");
    EXPECT_EQ(minor_in("nothing"), -1);
}

TEST(StandIns, AreCharacterDevicesWithNumbers)
{
    const std::string directory = testing::TempDir() + "/stand-ins";
    for (const int count : {0, 1, 70}) {
        const auto gpus = stand_in_gpus(count, "k80", directory);
        ASSERT_TRUE(gpus) << gpus.error().text;
        ASSERT_EQ(std::ssize(*gpus), count);
        for (int index = 0; index < count; ++index) {
            EXPECT_TRUE(
                (*gpus)[static_cast<std::size_t>(index)].file.ends_with(std::to_string(index)));
        }
    }
    EXPECT_FALSE(stand_in_gpus(-1, "", directory));
    EXPECT_FALSE(stand_in_gpus(1025, "", directory));
}

} // namespace
} // namespace gpuq::embedded
