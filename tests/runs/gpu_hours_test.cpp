// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/gpu_hours.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using Rows = std::vector<UseRow>;

JobUse use(std::uint32_t id, const std::string& user, std::chrono::seconds elapsed, int gpus,
           std::vector<std::pair<std::string, int>> models = {})
{
    return {JobId{id}, user, "physics", "short", elapsed, gpus, std::move(models)};
}

TEST(GpuHours, AreElapsedTimeTimesGpus)
{
    EXPECT_EQ(gpu_hours({use(1, "ada", 1h, 2), use(2, "bob", 90s, 1), use(3, "ada", 1s, 4)},
                        {UseBy::user}),
              (Rows{{{"ada"}, 2, 7204}, {{"bob"}, 1, 90}}));
    EXPECT_EQ(gpu_hours({}, {UseBy::user}), Rows{});
}

TEST(GpuHours, OfEachAttemptOfOneJobAddUp)
{
    EXPECT_EQ(gpu_hours({use(1, "ada", 10s, 1), use(1, "ada", 20s, 1)}, {}), (Rows{{{}, 1, 30}}));
}

TEST(GpuHours, ByModelLoseNothing)
{
    EXPECT_EQ(
        gpu_hours({use(1, "ada", 10s, 3, {{"k80", 1}, {"a100", 1}}), use(2, "ada", 5s, 2)},
                  {UseBy::model, UseBy::queue}),
        (Rows{{{"", "short"}, 2, 20}, {{"a100", "short"}, 1, 10}, {{"k80", "short"}, 1, 10}}));
}

TEST(UseByWords, AreEachOnce)
{
    EXPECT_EQ(*parse_use_by("user,model"), (std::vector<UseBy>{UseBy::user, UseBy::model}));
    for (const char* wrong : {"", "usr", "user,", "user,user"}) {
        EXPECT_EQ(parse_use_by(wrong).error().kind, Error::Kind::usage) << wrong;
    }
}

} // namespace
} // namespace gpuq
