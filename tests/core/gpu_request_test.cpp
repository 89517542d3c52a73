// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/gpu_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using testing::HasSubstr;

std::string reason(std::string_view text)
{
    const auto request = parse_gpu_request(text);
    return request ? "accepted" : request.error().text;
}

TEST(GpuRequest, ReadsCountsModelsAndMemory)
{
    EXPECT_EQ(*parse_gpu_request("1"), (GpuRequest{.count = 1}));
    EXPECT_EQ(*parse_gpu_request("0"), (GpuRequest{.count = 0}));
    EXPECT_EQ(*parse_gpu_request("99"), (GpuRequest{.count = 99}));
    EXPECT_EQ(*parse_gpu_request("k80"), (GpuRequest{.count = 1, .model = "k80"}));
    EXPECT_EQ(*parse_gpu_request("k80:2"), (GpuRequest{.count = 2, .model = "k80"}));
    EXPECT_EQ(*parse_gpu_request("3g.20gb:1"), (GpuRequest{.count = 1, .model = "3g.20gb"}));
    EXPECT_EQ(*parse_gpu_request("16G+"), (GpuRequest{.count = 1, .min_memory_mib = 16384}));
    EXPECT_EQ(*parse_gpu_request("500M+:2"), (GpuRequest{.count = 2, .min_memory_mib = 500}));
}

TEST(GpuRequest, SaysWhatIsWrong)
{
    EXPECT_THAT(reason("-1"), HasSubstr("negative"));
    EXPECT_THAT(reason("k80:-1"), HasSubstr("negative"));
    EXPECT_THAT(reason("1000000"), HasSubstr("no node has so many"));
    EXPECT_THAT(reason("k80:0"), HasSubstr("write 0 for no GPU"));
    EXPECT_THAT(reason("shard:1"), HasSubstr("parts of a GPU are not supported"));
    EXPECT_THAT(reason("mig:1g.5gb"), HasSubstr("parts of a GPU are not supported"));
    for (const char* text :
         {"",     ":",   ":2",  "k80:",  "k80:x", "k80:2:3", "1e9",
          "nan",  "NaN", "1.5", "+1",    " 1",    "k80 ",    "k80,v100",
          "0G+",  "+",   "G+",  "16G+:", "gpu=1", "a\nb",    "99999999999999999999",
          "2:k80"}) {
        EXPECT_THAT(reason(text), testing::AnyOf(HasSubstr("write 1, 2"), HasSubstr("no node")))
            << text;
    }
}

TEST(GpuRequest, IsWrittenAsItIsRead)
{
    for (const char* text : {"0", "1", "k80:2", "16G+:1", "500M+:3"}) {
        EXPECT_EQ(to_text(*parse_gpu_request(text)), text);
    }
}

} // namespace
} // namespace gpuq
