// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/remedies.h"

#include "ports/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

Node node(const std::string& name, const std::string& queue, int total, int in_use,
          const std::string& model)
{
    Node node;
    node.name = name;
    node.gpus = {NodeGpus{model, total, in_use}};
    node.partitions = {queue};
    node.cpus = 64;
    node.cpus_in_use = 0;
    return node;
}

Request request(int gpus, std::optional<std::string> model = {})
{
    Request request;
    request.queue = "short";
    request.walltime = 2h;
    request.gpus.count = gpus;
    request.gpus.model = std::move(model);
    return request;
}

Inventory inventory(std::vector<Node> nodes)
{
    return {{Partition{"short", 2h, {}, true, true, false, ""},
             Partition{"tiny", 30min, {}, false, true, false, ""},
             Partition{"long", 48h, {}, false, true, false, ""}},
            std::move(nodes)};
}

std::vector<std::string> commands(const std::vector<Advice>& list)
{
    std::vector<std::string> texts;
    for (const Advice& one : list) {
        texts.push_back(one.command);
    }
    return texts;
}

std::vector<std::string> remedies(const Request& request, std::string_view reason,
                                  std::vector<Node> nodes)
{
    return commands(remedies(request, JobId{7}, reason, inventory(std::move(nodes))));
}

TEST(WhatHelps, TellsWhatANodeHasAtMost)
{
    std::vector<Node> nodes = {node("n0", "short", 4, 0, "k80"), node("n1", "short", 2, 0, "v100"),
                               node("n2", "other", 8, 0, "a100")};
    nodes[1].cpus = 96;
    nodes[0].memory_mib = 64 << 10;
    EXPECT_EQ(most_of_a_node(nodes, "short"),
              "a node of queue short has 4 k80 or 2 v100, 96 cores and 64 GiB at most");
    EXPECT_EQ(most_of_a_node(nodes, "nosuch"), "");
    const auto list = remedies(request(1), JobId{7}, "PartitionConfig",
                               inventory({node("n0", "short", 4, 0, "")}));
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0].why.substr(0, 40), "a node of queue short has 4 GPUs, 64 cor");
}

TEST(WhatHelps, AnotherQueueThatHasRoom)
{
    EXPECT_THAT(remedies(request(2), "Resources",
                         {node("n0", "short", 4, 4, "k80"), node("n1", "long", 4, 2, "k80")}),
                ElementsAre("gpuq run -p long ..."));
    EXPECT_THAT(remedies(request(2), "Resources", {node("n1", "long", 4, 3, "k80")}), IsEmpty());
    EXPECT_THAT(remedies(request(2, "a100"), "Resources", {node("n1", "long", 4, 0, "k80")}),
                IsEmpty());
}

TEST(WhatHelps, AShareInAnotherQueueThatHasOneFree)
{
    Request share = request(1);
    share.gpus.share = GpuShare{GpuShare::Kind::shard, 1, 4, {}, {}};
    std::vector<Node> nodes = {node("n0", "short", 1, 1, "k80"), node("n1", "long", 1, 1, "a100")};
    EXPECT_THAT(remedies(share, "Resources", nodes), IsEmpty());
    nodes[1].shares = {{GpuShare::Kind::shard, "a100", 4, 4, 3, 1}};
    EXPECT_THAT(remedies(share, "Resources", nodes), ElementsAre("gpuq run -p long ..."));
    nodes[1].shares[0].in_use = 4;
    EXPECT_THAT(remedies(share, "Resources", nodes), IsEmpty());
}

TEST(WhatHelps, AShorterTimeWhereThatQueueGivesNoMore)
{
    EXPECT_THAT(remedies(request(1), "Resources", {node("n1", "tiny", 4, 0, "k80")}),
                ElementsAre("gpuq run -p tiny -t 30m ..."));
}

TEST(WhatHelps, FewerGpusOrAnotherModel)
{
    EXPECT_THAT(remedies(request(4), "Resources", {node("n0", "short", 4, 1, "k80")}),
                ElementsAre("gpuq run -g 3 ..."));
    EXPECT_THAT(remedies(request(2, "k80"), "Resources",
                         {node("n0", "short", 4, 3, "k80"), node("n1", "short", 4, 0, "a100")}),
                ElementsAre("gpuq run -g a100:2 ...", "gpuq run -g k80:1 ..."));
}

TEST(WhatHelps, FittingInBeforeOthers)
{
    EXPECT_THAT(remedies(request(1), "Priority", {node("n0", "short", 4, 4, "k80")}),
                ElementsAre("gpuq run -t TIME ..."));
}

TEST(WhatHelps, DependsOnTheReason)
{
    const std::vector<Node> free = {node("n0", "long", 4, 0, "k80")};
    EXPECT_THAT(remedies(request(1), "QOSMaxGRESPerUser", free), ElementsAre("gpuq ls"));
    EXPECT_THAT(remedies(request(1), "DependencyNeverSatisfied", free), ElementsAre("gpuq stop 7"));
    EXPECT_THAT(remedies(request(1), "JobHeldUser", free), ElementsAre("scontrol release 7"));
    EXPECT_THAT(remedies(request(1), "SomethingNew", free), IsEmpty());
    Request after = request(1);
    after.after = JobId{6};
    EXPECT_THAT(remedies(after, "Dependency", free), ElementsAre("gpuq show 6"));
}

TEST(WhatHelps, NamesTheLimitOfTheQueue)
{
    Request long_run = request(1);
    long_run.walltime = 5h;
    EXPECT_THAT(remedies(long_run, "PartitionTimeLimit", {}),
                ElementsAre("gpuq run -t 120m ...", "gpuq run -p long ..."));
}

} // namespace
} // namespace gpuq
