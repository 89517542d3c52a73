// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/gpu_models.h"

#include "ports/nodes.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

const Partition k_queue{.name = "gpu"};
const std::vector<Node> k_nodes = {
    {.name = "n1", .gpus = {{"k80", 4, 0}}, .partitions = {"gpu"}},
    {.name = "n2", .gpus = {{"a100-40g", 8, 0}, {"strange", 2, 0}}, .partitions = {"gpu"}},
    {.name = "n3", .gpus = {{"a100-80g", 2, 0}}, .partitions = {"gpu"}},
    {.name = "n4", .gpus = {{"h200", 8, 0}}, .partitions = {"other"}},
};

TEST(GpuModels, KnowsMemoryFromTheName)
{
    EXPECT_EQ(memory_of_model("k80"), 12U * 1024);
    EXPECT_EQ(memory_of_model("Tesla-K80"), 12U * 1024);
    EXPECT_EQ(memory_of_model("nvidia_a100-80gb"), 80U * 1024);
    EXPECT_EQ(memory_of_model("a100-sxm4-40gb"), 40U * 1024);
    EXPECT_EQ(memory_of_model("v100_32g"), 32U * 1024);
    EXPECT_EQ(memory_of_model("a10g"), 24U * 1024);
    EXPECT_EQ(memory_of_model("a10"), 24U * 1024);
    EXPECT_EQ(memory_of_model("a100"), 40U * 1024);
    EXPECT_EQ(memory_of_model("h200"), 141U * 1024);
    EXPECT_EQ(memory_of_model("l40s"), 48U * 1024);
    EXPECT_EQ(memory_of_model("strange"), std::nullopt);
    EXPECT_EQ(memory_of_model(""), std::nullopt);
    EXPECT_EQ(memory_of_model("k8000"), std::nullopt);
}

TEST(GpuModels, TakesTheSmallestThatIsEnough)
{
    const auto chosen = [](int count, std::uint64_t gib) {
        return model_with_memory({.count = count, .min_memory_mib = gib * 1024}, "gpu",
                                 offered_gpus(k_queue, k_nodes));
    };
    EXPECT_EQ(*chosen(1, 10), "k80");
    EXPECT_EQ(*chosen(1, 16), "a100-40g");
    EXPECT_EQ(*chosen(2, 64), "a100-80g");
    EXPECT_EQ(*chosen(8, 12), "a100-40g"); // k80 nodes have four GPUs
    EXPECT_EQ(chosen(1, 100).error(),
              fail(Error::Kind::denied,
                   "-g 100G+:1: queue gpu has a100-40g (40 GiB), a100-80g (80 GiB), k80 (12 GiB), "
                   "strange (memory not known); name a model: -g MODEL:1"));
}

TEST(GpuModels, OfSeveralQueuesTheFirstThatHasOne)
{
    const QueueGpus gpus = {{"short", {{"k80", 4, 12 * 1024}, {"p100", 4, 16 * 1024}}},
                            {"long", {{"v100", 4, 32 * 1024}}}};
    const auto chosen = [&](std::uint64_t gib, const std::vector<std::string>& queues) {
        return model_among({.count = 1, .min_memory_mib = gib * 1024}, queues, gpus);
    };
    EXPECT_EQ(*chosen(16, {"short", "long"}), "p100");
    EXPECT_EQ(*chosen(24, {"short", "long"}), "v100");
    EXPECT_EQ(*chosen(24, {"other", "long"}), "v100");
    EXPECT_EQ(chosen(24, {"short"}).error().kind, Error::Kind::denied);
    EXPECT_EQ(chosen(40, {"short", "long"}).error().text,
              "-g 40G+:1: queue long has v100 (32 GiB); name a model: -g MODEL:1");
    EXPECT_EQ(*chosen(8, {"other"}), std::nullopt); // memory of its GPUs unknown
}

} // namespace
} // namespace gpuq
