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
    EXPECT_EQ(reason("shard"),
              "invalid GPU request 'shard': write the number of parts of one GPU: shard:1");
    for (const char* text : {"shard:", "shard:0", "shard:-1", "shard:k80:1", "shard:1:1",
                             "shard:1025", "mps", "mps:0", "mps:x"}) {
        EXPECT_THAT(reason(text), HasSubstr("write the number of parts of one GPU")) << text;
    }
    for (const char* text : {"mig", "mig:", "mig:2", "mig:1g.5gb,", "mig::1"}) {
        EXPECT_THAT(reason(text), HasSubstr("write the profile of a MIG device")) << text;
    }
    EXPECT_THAT(reason("mig:1g.5gb:0"), HasSubstr("write 0 for no GPU"));
    for (const char* text :
         {"",     ":",   ":2",  "k80:",  "k80:x", "k80:2:3", "1e9",
          "nan",  "NaN", "1.5", "+1",    " 1",    "k80 ",    "k80,v100",
          "0G+",  "+",   "G+",  "16G+:", "gpu=1", "a\nb",    "99999999999999999999",
          "2:k80"}) {
        EXPECT_THAT(reason(text), testing::AnyOf(HasSubstr("write 1, 2"), HasSubstr("no node")))
            << text;
    }
}

TEST(GpuRequest, ReadsSharesOfAGpu)
{
    EXPECT_EQ(*parse_gpu_request("shard:2"),
              (GpuRequest{.count = 1, .share = GpuShare{GpuShare::Kind::shard, 2, {}, {}, {}}}));
    EXPECT_EQ(*parse_gpu_request("mps:50"),
              (GpuRequest{.count = 1, .share = GpuShare{GpuShare::Kind::mps, 50, {}, {}, {}}}));
    EXPECT_EQ(*parse_gpu_request("mig:1g.10gb"), (GpuRequest{.count = 1, .mig = "1g.10gb"}));
    EXPECT_EQ(*parse_gpu_request("mig:3g.20gb:2"), (GpuRequest{.count = 2, .mig = "3g.20gb"}));
    EXPECT_EQ(*parse_gpu_request("shards"), (GpuRequest{.count = 1, .model = "shards"}));
}

TEST(GpuRequest, HasSlurmsName)
{
    EXPECT_EQ(gres_text(*parse_gpu_request("2")), "gpu:2");
    EXPECT_EQ(gres_text(*parse_gpu_request("k80:2")), "gpu:k80:2");
    EXPECT_EQ(gres_text(*parse_gpu_request("shard:3")), "shard:3");
    EXPECT_EQ(gres_text(*parse_gpu_request("0")), "");
}

TEST(GpuTime, OfAShareIsAFraction)
{
    using std::chrono::milliseconds;
    EXPECT_EQ(gpu_time(*parse_gpu_request("2"), milliseconds{100}), milliseconds{200});
    EXPECT_EQ(gpu_time(*parse_gpu_request("0"), milliseconds{100}), milliseconds{0});
    GpuRequest share = *parse_gpu_request("shard:1");
    EXPECT_EQ(gpu_time(share, milliseconds{100}), milliseconds{100}); // of how many?
    share.share->per_gpu = 4;
    EXPECT_EQ(gpu_time(share, milliseconds{100}), milliseconds{25});
    share.share->parts = 5;
    EXPECT_EQ(gpu_time(share, milliseconds{100}), milliseconds{100});
    share.share->per_gpu = 0; // a damaged record
    EXPECT_EQ(gpu_time(share, milliseconds{100}), milliseconds{100});
}

TEST(GpuRequest, IsWrittenAsItIsRead)
{
    for (const char* text :
         {"0", "1", "k80:2", "16G+:1", "500M+:3", "shard:2", "mps:50", "mig:1g.10gb:1"}) {
        EXPECT_EQ(to_text(*parse_gpu_request(text)), text);
    }
}

} // namespace
} // namespace gpuq
