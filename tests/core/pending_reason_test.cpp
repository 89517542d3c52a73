// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/pending_reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace gpuq {
namespace {

using Kind = PendingReason::Kind;

TEST(PendingReason, IsToldInWords)
{
    EXPECT_EQ(pending_reason_text("Resources"), "no GPU is free");
    EXPECT_EQ(pending_reason_text("Resources", {.count = 0}),
              "not enough cores or memory are free");
    EXPECT_EQ(pending_reason_text("Resources", {.count = 3}), "too few GPUs are free");
    EXPECT_EQ(pending_reason_text("Resources", *parse_gpu_request("shard:1")),
              "no share of a GPU is free");
    EXPECT_EQ(pending_reason_text("Priority", {.count = 0}), "others are before you");
    EXPECT_EQ(pending_reason_text("QOSMaxJobsPerUserLimit"),
              "your limit is reached (QOSMaxJobsPerUserLimit)");
    EXPECT_EQ(pending_reason_text("QOSGrpGRES"), "a limit of your group is reached (QOSGrpGRES)");
    EXPECT_EQ(pending_reason_text("QOSMaxGRESPerJob"),
              "it asks for more than one run may have (QOSMaxGRESPerJob)");
    EXPECT_EQ(pending_reason_text("SomethingNew"), "SomethingNew");
    EXPECT_EQ(pending_reason_text(""), "just queued");
}

TEST(PendingReason, IsOfAKindThatDecidesWhatHelps)
{
    EXPECT_EQ(kind_of_reason("Priority"), Kind::others_first);
    EXPECT_EQ(kind_of_reason("PartitionTimeLimit"), Kind::too_large);
    EXPECT_EQ(kind_of_reason("QOSMaxGRESPerUser"), Kind::own_limit);
    EXPECT_EQ(kind_of_reason("AssocGrpGRESMinutes"), Kind::group_limit);
    EXPECT_EQ(kind_of_reason("AssocMaxGRESPerJob"), Kind::too_large);
    EXPECT_EQ(kind_of_reason("SomethingNew"), Kind::unknown);
    EXPECT_EQ(kind_of_reason(""), Kind::soon);
}

TEST(PendingReason, HasATableWithoutGaps)
{
    std::set<std::string_view> keywords;
    for (const PendingReason& row : pending_reasons()) {
        EXPECT_TRUE(keywords.insert(row.word).second) << row.word;
        EXPECT_NE(row.text, "") << row.word;
        EXPECT_NE(row.kind, Kind::unknown) << row.word;
        EXPECT_THAT(std::string(row.text), testing::Not(testing::EndsWith("."))) << row.word;
    }
}

} // namespace
} // namespace gpuq
