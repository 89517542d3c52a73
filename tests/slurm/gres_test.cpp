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
