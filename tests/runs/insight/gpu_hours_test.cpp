// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/gpu_hours.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using Rows = std::vector<UseRow>;

UseRecord use(std::uint32_t id, const std::string& user, std::chrono::seconds elapsed, int gpus,
              std::vector<std::pair<std::string, int>> models = {})
{
    return {
        {JobId{id}, user, "physics", "short", elapsed, gpus, std::move(models)}, true, "", {}, {}};
}

TEST(GpuHours, AreElapsedTimeTimesGpus)
{
    EXPECT_EQ(gpu_hours({use(1, "ada", 1h, 2), use(2, "bob", 90s, 1), use(3, "ada", 1s, 4)},
                        {UseBy::user}),
              (Rows{{{"ada"}, 2, 7204}, {{"bob"}, 1, 90}}));
    EXPECT_EQ(gpu_hours({}, {UseBy::user}), Rows{});
}

TEST(GpuHours, OfAShareAreAFractionOfAGpu)
{
    UseRecord share = use(1, "ada", 1h, 0);
    share.use.share = GpuShare{GpuShare::Kind::shard, 1, {}, {}, {}};
    share.comment = "gpuq:KEY busy=3600 idle=0 unknown=0"; // of the whole GPU
    std::vector<UseRecord> records = {share, use(2, "ada", 10s, 1)};
    EXPECT_EQ(gpu_hours(records, {UseBy::user}), (Rows{{{"ada"}, 2, 3610}}));
    Node four;
    four.shares = {{GpuShare::Kind::mps, "k80", 2, 2, 0, 0},
                   {GpuShare::Kind::shard, "k80", 4, 4, 0, 0}};
    set_shares_per_gpu(records, {Node{}, four});
    EXPECT_EQ(gpu_hours(records, {UseBy::user}), (Rows{{{"ada"}, 2, 910}}));
    EXPECT_EQ(gpu_hours(records, {UseBy::model}), (Rows{{{""}, 2, 910}}));
    EXPECT_EQ(gpu_time_of(records[0]).unknown, 15min);
}

TEST(GpuHours, OfSharesOnSeveralNodesAreMoreThanOneGpu)
{
    UseRecord shares = use(1, "ada", 1h, 0); // sbatch -N 2 --gres=shard:4
    shares.use.share = GpuShare{GpuShare::Kind::shard, 8, {}, {}, {}};
    std::vector<UseRecord> records = {shares};
    EXPECT_EQ(gpu_hours(records, {UseBy::user}), (Rows{{{"ada"}, 1, 3600}}))
        << "no node has shares";
    Node four;
    four.shares = {{GpuShare::Kind::shard, "k80", 4, 4, 0, 0}};
    set_shares_per_gpu(records, {four});
    EXPECT_EQ(gpu_hours(records, {UseBy::user}), (Rows{{{"ada"}, 1, 7200}}));
    EXPECT_EQ(gpu_time_of(records[0]).unknown, 2h);
}

TEST(GpuHours, OfEachAttemptOfOneJobAddUp)
{
    EXPECT_EQ(gpu_hours({use(1, "ada", 10s, 1), use(1, "ada", 20s, 1)}, {}), (Rows{{{}, 1, 30}}));
}

TEST(GpuHours, HaveThePercentilesOfTheWaitsOfEnoughJobs)
{
    std::vector<UseRecord> records;
    for (int i = 0; i < 20; ++i) {
        records.push_back(use(1 + i, "ada", 1s, 1));
        records.back().waited = std::chrono::seconds(i);
    }
    records.push_back(use(99, "ada", 1s, 1)); // started before
    EXPECT_EQ(gpu_hours(records, {}), (Rows{{{}, 21, 21, 0, 0, 9s, 18s}}));
    records.erase(records.begin());
    EXPECT_EQ(gpu_hours(records, {}), (Rows{{{}, 20, 20, 0, 0, 10s, {}}}));
}

TEST(GpuHours, ByModelLoseNothing)
{
    EXPECT_EQ(
        gpu_hours({use(1, "ada", 10s, 3, {{"k80", 1}, {"a100", 1}}), use(2, "ada", 5s, 2)},
                  {UseBy::model, UseBy::queue}),
        (Rows{{{"", "short"}, 2, 20}, {{"a100", "short"}, 1, 10}, {{"k80", "short"}, 1, 10}}));
}

UseRecord noted(UseRecord record, const std::string& note)
{
    record.comment = "gpuq:KEY " + note;
    return record;
}

TEST(GpuHours, AreBusyIdleAndUnknownOnesExactly)
{
    const auto rows = gpu_hours(
        {noted(use(1, "ada", 1h, 1), "busy=3541 idle=20 unknown=30"), use(2, "ada", 10s, 2)},
        {UseBy::user});
    EXPECT_EQ(rows, (Rows{{{"ada"}, 2, 3620, 3541, 20}}));
    EXPECT_EQ(rows[0].unknown(), 59);
}

TEST(GpuHours, BelieveNoJobThatItHadMoreThanItHad)
{
    EXPECT_EQ(gpu_hours({noted(use(1, "ada", 10s, 1), "busy=8 idle=20 unknown=0")}, {}),
              (Rows{{{}, 1, 10, 8, 2}}));
    EXPECT_EQ(gpu_hours({noted(use(1, "ada", 10s, 1), "busy=11 idle=0 unknown=0")}, {}),
              (Rows{{{}, 1, 10, 10, 0}}));
}

TEST(GpuHours, OfAPartOfAJobAreUnknown)
{
    UseRecord part = noted(use(1, "ada", 10s, 1), "busy=8 idle=2 unknown=0");
    part.whole = false;
    EXPECT_EQ(gpu_hours({part}, {}), (Rows{{{}, 1, 10, 0, 0}}));
}

TEST(GpuHours, OfEachOfSeveralModelsAreUnknown)
{
    const UseRecord both =
        noted(use(1, "ada", 10s, 2, {{"k80", 1}, {"a100", 1}}), "busy=20 idle=0 unknown=0");
    EXPECT_EQ(gpu_hours({both}, {UseBy::model}),
              (Rows{{{"a100"}, 1, 10, 0, 0}, {{"k80"}, 1, 10, 0, 0}}));
    const UseRecord one = noted(use(1, "ada", 10s, 2, {{"k80", 2}}), "busy=20 idle=0 unknown=0");
    EXPECT_EQ(gpu_hours({one}, {UseBy::model}), (Rows{{{"k80"}, 1, 20, 20, 0}}));
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
