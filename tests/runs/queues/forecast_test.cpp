// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/forecast.h"

#include "runs/queues/expected_start.h"
#include "runs/queues/machine.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using fakes::gpu_node;
using fakes::holding;
using fakes::machine;
using fakes::queued;

Job holding_since(std::uint32_t id, const char* on, int gpus, std::chrono::minutes since,
                  std::chrono::minutes limit)
{
    Job job = holding(id, on, gpus, k_now - since + limit);
    job.started_at = k_now - since;
    job.walltime = limit;
    return job;
}

StartForecast forecast(std::uint32_t id, const std::vector<Job>& jobs, const Inventory& nodes,
                       bool complete = true)
{
    return forecast_starts({JobId{id}}, AllJobs{jobs, complete}, nodes, {}, k_now).at(JobId{id});
}

TEST(Forecast, IsNowIfThereIsRoom)
{
    const StartForecast found = forecast(1, {queued(1, 9, 2, 60min)}, machine({gpu_node("n0")}));
    EXPECT_EQ(found, (StartForecast{k_now, k_now, ""}));
}

TEST(Forecast, IsBeforeTheTimeLimitsOfTheJobsBefore)
{
    const Inventory one = machine({gpu_node("n0")});
    const std::vector<Job> jobs = {holding_since(1, "n0", 4, 10min, 10h), queued(2, 9, 4, 10h),
                                   queued(3, 5, 4, 1h)};
    const StartForecast first = forecast(2, jobs, one);
    const StartForecast second = forecast(3, jobs, one);
    EXPECT_GT(first.p50, k_now);
    EXPECT_LT(first.p50, first.p90);
    EXPECT_LE(first.p90, k_now + 10h);
    EXPECT_GT(second.p50, first.p50);
    EXPECT_LT(second.p90, k_now + 20h);
}

TEST(Forecast, FollowsHowFarEarlierForecastsWereRight)
{
    const Inventory one = machine({gpu_node("n0")});
    const AllJobs all{{holding_since(1, "n0", 4, 0min, 60min), queued(2, 9, 4, 60min)}, true};
    RunTimes times;
    const auto found = [&] { return forecast_starts({JobId{2}}, all, one, times, k_now); };
    const StartForecast before = found().at(JobId{2});
    times.calibration.p50 = 0.9;
    times.calibration.p90 = 0.95;
    const StartForecast after = found().at(JobId{2});
    EXPECT_EQ(after.p50, before.p90);
    EXPECT_GE(after.p90, before.p90);
    times.calibration.p90 = 0.8;
    EXPECT_EQ(found().at(JobId{2}).p90, after.p50) << "never before p50";
}

TEST(Forecast, OfAJobBehindOnesAboutToEndIsAlmostCertain)
{
    const Inventory one = machine({gpu_node("n0")});
    const std::vector<Job> jobs = {holding_since(1, "n0", 4, 99min, 100min),
                                   queued(2, 9, 4, 60min)};
    const StartForecast found = forecast(2, jobs, one);
    EXPECT_LE(*found.p90, k_now + 1min);
    const std::vector<Job> late = {holding_since(1, "n0", 4, 101min, 100min),
                                   queued(2, 9, 4, 60min)};
    EXPECT_LE(*forecast(2, late, one).p90, k_now + 1min);
}

TEST(Forecast, LetsAShortJobPassALargeOneOnlyIfThatDoesNotDelayIt)
{
    const Inventory one = machine({gpu_node("n0")});
    const Job large = queued(2, 9, 4, 60min);
    std::vector<Job> jobs = {holding_since(1, "n0", 2, 0min, 120min), large,
                             queued(3, 5, 1, 100min)};
    EXPECT_EQ(forecast(3, jobs, one).p90, k_now) << "it ends before the large one can start";
    jobs[2] = queued(3, 5, 1, 150min);
    EXPECT_GT(*forecast(3, jobs, one).p50, *forecast(2, jobs, one).p50);
}

TEST(Forecast, CountsEachTaskOfAnArray)
{
    const Inventory one = machine({gpu_node("n0")});
    std::vector<Job> jobs = {holding_since(1, "n0", 4, 0min, 60min), queued(2, 9, 4, 60min),
                             queued(3, 5, 4, 60min)};
    const Time behind_one = *forecast(3, jobs, one).p50;
    jobs[1].called = "2_[0-9]";
    const Time behind_ten = *forecast(3, jobs, one).p50;
    EXPECT_GT(behind_ten - k_now, 3 * (behind_one - k_now));
    jobs[1].called = "2_[0-3,8,...]";
    EXPECT_EQ(forecast(3, jobs, one).unknown, "Slurm does not show all tasks of the array 2");
    EXPECT_EQ(forecast(2, jobs, one).unknown, "") << "its first task";
}

TEST(Forecast, RunsOnlyAsManyTasksAsTheArrayAllows)
{
    const Inventory one = machine({gpu_node("n0")});
    std::vector<Job> jobs = {holding_since(1, "n0", 2, 0min, 60min), queued(2, 9, 2, 60min),
                             queued(3, 5, 2, 60min)};
    jobs[1].called = "2_[0-99%1]";
    EXPECT_LE(*forecast(3, jobs, one).p90, k_now + 60min) << "the other half of the node";
}

TEST(Forecast, IsUnknownWithAReason)
{
    const Inventory one = machine({gpu_node("n0")});
    std::vector<Job> jobs = {holding_since(1, "n0", 4, 0min, 60min), queued(2, 9, 1, 60min)};
    EXPECT_EQ(forecast(2, jobs, one, false).unknown, "the jobs of other users are hidden here");
    jobs[1].size.gpus = {{"a100", 1}};
    EXPECT_EQ(forecast(2, jobs, one).unknown,
              "the nodes that are up in its queue lack the resources it asks for");
    jobs[1] = queued(2, 9, 1, 60min);
    jobs[1].priority.reset();
    EXPECT_EQ(forecast(2, jobs, one).unknown, "its priority is not shown");
    jobs[1] = queued(2, 9, 1, 60min);
    jobs[0].ends_at.reset();
    EXPECT_EQ(forecast(2, jobs, one).unknown, "jobs without a time limit are in its way");
}

TEST(Forecast, OfAnImaginedJobIsThatOfTheLastInLine)
{
    const Inventory one = machine({gpu_node("n0")});
    const std::vector<Job> jobs = {holding_since(1, "n0", 4, 0min, 60min), queued(2, 1, 4, 60min),
                                   queued(3, 7, 4, 60min)};
    const StartForecast found =
        forecast_start(queued(0, 0, 4, 60min), AllJobs{jobs, true}, one, {}, k_now);
    EXPECT_GT(found.p50, forecast(2, jobs, one).p50);
    EXPECT_EQ(found.unknown, "");
    EXPECT_EQ(forecast_start(queued(0, 0, 4, 60min), AllJobs{jobs, false}, one, {}, k_now).unknown,
              "the jobs of other users are hidden here");
    EXPECT_EQ(forecast_start(queued(0, 0, 9, 60min), AllJobs{jobs, true}, one, {}, k_now).unknown,
              "the nodes that are up in its queue lack the resources it asks for");
}

TEST(Forecast, OfSeveralImaginedJobsAreInTheirOrder)
{
    const Inventory one = machine({gpu_node("n0")});
    const AllJobs all{{holding_since(1, "n0", 4, 0min, 60min)}, true};
    const Job imagined = queued(0, 0, 4, 60min);
    const auto found = forecast_imagined({imagined, imagined}, all, one, {}, k_now);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_GT(found[0].p50, k_now);
    EXPECT_GT(found[1].p50, found[0].p90) << "it waits for the end of the other one";
}

TEST(Forecast, OfAShareCountsTheSharesThatAreFree)
{
    Node divided = gpu_node("n0", 1);
    divided.shares = {{GpuShare::Kind::shard, "k80", 2, 2, 0, 0}};
    Job one = holding_since(1, "n0", 1, 0min, 60min);
    one.held.whole.clear();
    one.size.share = GpuShare{GpuShare::Kind::shard, 1, {}, {}, {}};
    Job share = queued(2, 9, 0, 60min);
    share.size.gpus.clear();
    share.size.cpus = 1;
    share.size.share = one.size.share;
    EXPECT_EQ(forecast(2, {one, share}, machine({divided})).p90, k_now);
    EXPECT_GT(forecast(2, {one, queued(2, 9, 1, 60min)}, machine({divided})).p50, k_now)
        << "the whole GPU";
}

/// Without reasons to the contrary, the expected start by the limits is later.
TEST(Forecast, OfAMixedQueueIsBeforeTheExpectedStart)
{
    const Inventory three = machine({gpu_node("n0"), gpu_node("n1"), gpu_node("n2")});
    std::vector<Job> jobs = {
        holding_since(1, "n0", 4, 5min, 60min), holding_since(2, "n1", 2, 20min, 240min),
        holding_since(3, "n1", 2, 30min, 120min), holding_since(4, "n2", 3, 1min, 30min)};
    for (std::uint32_t i = 0; i < 30; ++i) {
        jobs.push_back(queued(10 + i, 100 - i, 1 + static_cast<int>(i % 4), 60min + i * 10min));
        jobs.back().size.nodes = i % 7 == 0 ? 2 : 1;
        jobs.back().size.cpus = 4;
    }
    const AllJobs all{jobs, true};
    for (const std::uint32_t id : {12U, 20U, 39U}) {
        const auto expected = expected_starts({JobId{id}}, all, three, k_now).at(JobId{id});
        const StartForecast found = forecast(id, jobs, three);
        EXPECT_LE(found.p50, found.p90);
        EXPECT_LE(found.p90, expected.at) << id;
    }
}

} // namespace
} // namespace gpuq
