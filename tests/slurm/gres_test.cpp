// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/gres.h"

#include <gtest/gtest.h>

namespace gpuq::slurm {
namespace {

using All = std::vector<Gres>;

TEST(Gres, ReadsWhatNodesHave)
{
    EXPECT_EQ(parse_gres("gpu:k80:4(S:0-1)"), (All{{"k80", 4}}));
    EXPECT_EQ(parse_gres("gpu:a100:4(S:0),gpu:k80:2,shard:8"), (All{{"a100", 4}, {"k80", 2}}));
    EXPECT_EQ(parse_gres("gpu:8"), (All{{"", 8}}));
}

TEST(Gres, ReadsWhatIsInUse)
{
    EXPECT_EQ(parse_gres("gpu:k80:2(IDX:0,2),gpu:a100:0(IDX:N/A)"), (All{{"k80", 2}, {"a100", 0}}));
}

TEST(Gres, ReadsRequestsInBothSpellings)
{
    EXPECT_EQ(parse_gres("gres:gpu:k80:2"), (All{{"k80", 2}}));
    EXPECT_EQ(parse_gres("gres/gpu:2"), (All{{"", 2}}));
    EXPECT_EQ(parse_gres("gres/gpu"), (All{{"", 1}}));
}

TEST(Gres, ReadsOtherResourcesByName)
{
    EXPECT_EQ(parse_gres("gpu:k80:2,shard:k80:8", "shard"), (All{{"k80", 8}}));
    EXPECT_EQ(parse_gres("gres:shard:2", "shard"), (All{{"", 2}}));
    EXPECT_EQ(parse_gres("shard:(null):2(IDX:0-1)", "shard"), (All{{"", 2}}));
    EXPECT_EQ(parse_gres("gpu:2,shard:8", "mps"), All{});
}

// Strings of Slurm 22.05.8: 2 GPUs with 4 shards each.
constexpr const char* k_gres = "gpu:k80:2,shard:k80:8";

std::vector<NodeShares> shares(std::optional<int> in_use, std::optional<int> gpus)
{
    return {{GpuShare::Kind::shard, "k80", 4, 8, in_use, gpus}};
}

TEST(Shares, CountThoseThatJobsHold)
{
    EXPECT_EQ(shares_of_node(k_gres, "gpu:k80:0(IDX:N/A),shard:k80:0(IDX:N/A)", "cpu=1"),
              shares(0, 0));
    EXPECT_EQ(shares_of_node(k_gres, "gpu:k80:1(IDX:1),shard:k80:1(IDX:0)",
                             "cpu=6,mem=24103M,gres/gpu=1,gres/shard=3"),
              shares(3, 1));
    EXPECT_EQ(
        shares_of_node(k_gres, "gpu:k80:0(IDX:N/A),shard:k80:2(IDX:0-1)", "cpu=5,gres/shard=5"),
        shares(5, 2));
    EXPECT_EQ(shares_of_node(k_gres, "gpu:k80:0(IDX:N/A),shard:k80:6(4/4,2/4)", ""), shares(6, 2));
    EXPECT_EQ(shares_of_node("gpu:2,mps:200", "gpu:0,mps:(null):1(IDX:0)", "gres/mps=50"),
              (std::vector<NodeShares>{{GpuShare::Kind::mps, "", 100, 200, 50, 1}}));
    EXPECT_TRUE(shares_of_node("gpu:k80:2", "gpu:k80:0(IDX:N/A)", "").empty());
}

TEST(Shares, AreUnknownUnlessSlurmReportsThem)
{
    EXPECT_EQ(shares_of_node(k_gres, std::nullopt, std::nullopt),
              shares(std::nullopt, std::nullopt));
    // Not accounted for (AccountingStorageTRES), though some are held.
    EXPECT_EQ(shares_of_node(k_gres, "gpu:k80:0(IDX:N/A),shard:k80:1(IDX:0)", "cpu=1"),
              shares(std::nullopt, 1));
    EXPECT_EQ(shares_of_node(k_gres, "shard:k80:1(IDX:x)", ""), shares(std::nullopt, std::nullopt));
}

TEST(Shares, AreListedWithTheirGpusInAJob)
{
    using List = std::vector<HeldShares>;
    const auto shard = GpuShare::Kind::shard;
    EXPECT_EQ(shares_of_job("shard:k80:3(IDX:1)", "n0"), (List{{"n0", "k80", shard, 3, {1}}}));
    EXPECT_EQ(shares_of_job("shard:5(IDX:0,2-3)", "n0"), (List{{"n0", "", shard, 5, {0, 2, 3}}}));
    EXPECT_EQ(shares_of_job("shard:k80:3(0/4,3/4)", "n0"), (List{{"n0", "k80", shard, 3, {1}}}));
    EXPECT_EQ(shares_of_job("mps:(null):50(IDX:0)", "n1"),
              (List{{"n1", "", GpuShare::Kind::mps, 50, {0}}}));
    EXPECT_EQ(shares_of_job("shard:2", "n0"), (List{{"n0", "", shard, 2, {}}}));
    EXPECT_EQ(shares_of_job("shard:2(IDX:0-9999999)", "n0"), (List{{"n0", "", shard, 2, {}}}));
    EXPECT_EQ(shares_of_job("gpu:k80:1(IDX:0),shard:0(IDX:N/A)", "n0"), List{});
}

TEST(Shares, MakeAGpuOneInUse)
{
    using Gpus = std::vector<NodeGpus>;
    EXPECT_EQ(gpus_of_node(k_gres, "gpu:k80:0(IDX:N/A),shard:k80:0(IDX:N/A)"),
              (Gpus{{"k80", 2, 0}}));
    EXPECT_EQ(gpus_of_node(k_gres, "gpu:k80:0(IDX:N/A),shard:k80:1(IDX:0)"), (Gpus{{"k80", 2, 1}}));
    EXPECT_EQ(gpus_of_node(k_gres, "gpu:k80:1(IDX:1),shard:k80:1(IDX:0)"), (Gpus{{"k80", 2, 2}}));
    EXPECT_EQ(gpus_of_node("gpu:k80:2,gpu:a100:1", "gpu:k80:1(IDX:1),gpu:a100:0(IDX:N/A)"),
              (Gpus{{"k80", 2, 1}, {"a100", 1, 0}}));
    EXPECT_EQ(gpus_of_node(k_gres, std::nullopt), (Gpus{{"k80", 2, std::nullopt}}));
}

TEST(Gres, LeavesOtherThingsOut)
{
    EXPECT_EQ(parse_gres(""), All{});
    EXPECT_EQ(parse_gres("(null)"), All{});
    EXPECT_EQ(parse_gres("craynetwork:4,nic:2"), All{});
    EXPECT_EQ(parse_gres("gpu:k80:no_consume:4"), (All{{"k80", 4}}));
}

TEST(Gres, SurvivesNonsense)
{
    EXPECT_EQ(parse_gres("gpu:k80:99999999999999999999"), (All{{"99999999999999999999", 1}}));
    EXPECT_EQ(parse_gres(",,gpu(((,"), (All{{"", 1}}));
}

} // namespace
} // namespace gpuq::slurm
