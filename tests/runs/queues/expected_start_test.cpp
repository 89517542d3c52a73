// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/expected_start.h"

#include "runs/queues/machine.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using fakes::gpu_node;
using fakes::holding;
using fakes::machine;
using fakes::queued;

StartEstimate estimate(std::uint32_t id, const std::vector<Job>& jobs, const Inventory& inventory)
{
    return expected_starts({JobId{id}}, AllJobs{jobs, true}, inventory, k_now).at(JobId{id});
}

/// The case from the live trials: first in the queue, behind four running jobs with known ends.
TEST(ExpectedStart, OfTheFirstInLineIsWhenEnoughRunningJobsHaveReachedTheirLimits)
{
    const Inventory one = machine({gpu_node("n0")});
    const std::vector<Job> jobs = {holding(1, "n0", 1, k_now + 40min),
                                   holding(2, "n0", 1, k_now + 10min),
                                   holding(3, "n0", 1, k_now + 20min),
                                   holding(4, "n0", 1, k_now + 30min), queued(5, 9, 2, 60min)};
    const StartEstimate found = estimate(5, jobs, one);
    EXPECT_EQ(found.at, k_now + 20min);
    EXPECT_EQ(found.after, JobId{3});
    EXPECT_EQ(basis_text(found), "job 3 reaches its time limit");
}

/// A job with shards of a GPU; on the node "n0" if it runs.
Job with_shards(Job job, int parts)
{
    job.gpus = 0;
    job.held.whole.clear();
    job.size.gpus.clear();
    job.size.cpus = 1;
    job.size.share = GpuShare{GpuShare::Kind::shard, parts, {}, {}, {}};
    return job;
}

TEST(ExpectedStart, OfAShareIsWhenAShareIsFree)
{
    Node divided = gpu_node("n0", 1);
    divided.shares = {{GpuShare::Kind::shard, "k80", 2, 2, 0, 0}};
    const Inventory one = machine({divided});
    const std::vector<Job> two = {with_shards(holding(1, "n0", 1, k_now + 40min), 1),
                                  with_shards(holding(2, "n0", 1, k_now + 10min), 1)};
    std::vector<Job> jobs = two;
    jobs.push_back(with_shards(queued(3, 9, 1, 60min), 1));
    EXPECT_EQ(estimate(3, jobs, one).at, k_now + 10min);
    EXPECT_EQ(estimate(3, jobs, one).after, JobId{2});
    jobs.back() = with_shards(queued(3, 9, 1, 60min), 2);
    EXPECT_EQ(estimate(3, jobs, one).at, k_now + 40min);
    jobs.back() = queued(3, 9, 1, 60min); // the whole GPU
    EXPECT_EQ(estimate(3, jobs, one).at, k_now + 40min);
    jobs = {holding(1, "n0", 1, k_now + 20min), with_shards(queued(3, 9, 1, 60min), 1)};
    EXPECT_EQ(estimate(3, jobs, one).at, k_now + 20min); // held as a whole
    jobs = {two[0], with_shards(queued(3, 9, 1, 60min), 1)};
    EXPECT_EQ(estimate(3, jobs, one).at, k_now); // the other one is free
    jobs.back() = with_shards(queued(3, 9, 1, 60min), 3);
    EXPECT_FALSE(estimate(3, jobs, one).unknown.empty()); // never
}

TEST(ExpectedStart, OfAShareNeedsEnoughOnOneGpu)
{
    Node divided = gpu_node("n0", 2);
    divided.shares = {{GpuShare::Kind::shard, "k80", 4, 8, 6, 2}};
    const auto on = [](Job job, int parts, std::vector<int> gpus) {
        job = with_shards(std::move(job), parts);
        job.held.shares = {{"n0", "k80", GpuShare::Kind::shard, parts, std::move(gpus)}};
        return job;
    };
    const Inventory one = machine({divided});
    std::vector<Job> jobs = {on(holding(1, "n0", 1, k_now + 40min), 3, {0}),
                             on(holding(2, "n0", 1, k_now + 10min), 3, {1}),
                             with_shards(queued(3, 9, 1, 60min), 2)};
    EXPECT_EQ(estimate(3, jobs, one).at, k_now + 10min); // a free share on each GPU
    jobs.back() = with_shards(queued(3, 9, 1, 60min), 1);
    EXPECT_EQ(estimate(3, jobs, one).at, k_now);
    jobs.back() = queued(3, 9, 1, 60min);
    EXPECT_EQ(estimate(3, jobs, one).after, JobId{2});
    jobs.back() = queued(3, 9, 2, 60min);
    EXPECT_EQ(estimate(3, jobs, one).after, JobId{1});
    // The other job has the GPU that is not shared.
    jobs = {holding(1, "n0", 1, k_now + 40min), on(holding(2, "n0", 1, k_now + 10min), 3, {0}),
            with_shards(queued(3, 9, 1, 60min), 2)};
    EXPECT_EQ(estimate(3, jobs, one).at, k_now + 10min);
    jobs.back().size.share->kind = GpuShare::Kind::mps;
    EXPECT_EQ(estimate(3, jobs, one).unknown,
              "the nodes that are up in its queue lack the resources it asks for");
    Node both = divided;
    both.shares.push_back({GpuShare::Kind::mps, "k80", 100, 200, 0, 0});
    EXPECT_EQ(estimate(3, jobs, machine({both})).unknown,
              "gpuq does not compare shares with nodes that have several models or kinds of them");
}

TEST(ExpectedStart, WaitsForThoseThatGoFirst)
{
    const Inventory one = machine({gpu_node("n0")});
    const std::vector<Job> jobs = {holding(1, "n0", 4, k_now + 10min), queued(2, 9, 4, 60min),
                                   queued(3, 5, 1, 5min)};
    const StartEstimate found = estimate(3, jobs, one);
    EXPECT_EQ(found.at, k_now + 70min);
    EXPECT_EQ(found.after, JobId{2});
    EXPECT_TRUE(found.after_waits);
    EXPECT_EQ(basis_text(found), "job 2, which goes first, reaches its time limit");
    EXPECT_EQ(estimate(2, jobs, one).at, k_now + 10min) << "who is behind does not count";
}

TEST(ExpectedStart, CountsTheGpusOfTheModelAskedFor)
{
    const Inventory two = machine({gpu_node("n0"), gpu_node("n1", 4, "gpu", "a100")});
    Job a100 = holding(2, "n1", 4, k_now + 50min);
    a100.held.whole = {{"n1", "a100", 4}};
    std::vector<Job> jobs = {holding(1, "n0", 4, k_now + 10min), a100, queued(3, 5, 1, 5min)};
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 10min);
    jobs[2].size.gpus = {{"a100", 1}};
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 50min);
}

TEST(ExpectedStart, TakesCoresMemoryAndNodesIntoAccount)
{
    const Inventory two = machine({gpu_node("n0"), gpu_node("n1")});
    std::vector<Job> jobs = {holding(1, "n0", 1, k_now + 10min), holding(2, "n1", 1, k_now + 20min),
                             queued(3, 5, 1, 5min)};
    EXPECT_EQ(estimate(3, jobs, two).at, k_now);
    jobs[2].size.cpus = 16;
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 10min);
    jobs[2].size.cpus = 1;
    jobs[2].size.memory_mib = 60 << 10;
    jobs[0].size.memory_mib = jobs[1].size.memory_mib = 8 << 10;
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 10min);
    jobs[2].size = JobSize{2, 2, 0, {{"", 8}}, false, "", "", ""};
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 20min);
    jobs[2].size = JobSize{1, 1, 0, {{"", 1}}, true, "", "", ""};
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 10min) << "a node of its own";
    jobs[2].size = JobSize{1, 1, 0, {{"", 4}}, false, "n1", "", ""};
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 20min);
    jobs[2].size = JobSize{1, 1, 0, {{"", 4}}, false, "", "n[0]", ""};
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 20min);
}

TEST(ExpectedStart, SpreadsGpusOverNodesOnlyWhereThatWasAskedFor)
{
    const Inventory two = machine({gpu_node("n0"), gpu_node("n1")});
    std::vector<Job> jobs = {holding(1, "n0", 2, k_now + 10min), holding(2, "n1", 2, k_now + 20min),
                             queued(3, 5, 4, 5min)};
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 10min) << "--gres=gpu:4: on one node";
    jobs[2].size.spreads = true;
    EXPECT_EQ(estimate(3, jobs, two).at, k_now) << "--gpus=4: two on each";
}

TEST(ExpectedStart, LeavesOutNodesThatTakeNoJobsAndOtherQueues)
{
    Inventory three = machine({gpu_node("n0"), gpu_node("n1"), gpu_node("n2", 4, "other")});
    three.nodes[1].up = false;
    const std::vector<Job> jobs = {holding(1, "n0", 4, k_now + 10min), queued(2, 5, 4, 5min)};
    EXPECT_EQ(estimate(2, jobs, three).at, k_now + 10min);
    three.nodes[0].reserved = true;
    EXPECT_EQ(estimate(2, jobs, three).unknown,
              "the nodes that are up in its queue lack the resources it asks for");
}

TEST(ExpectedStart, AJobOfAnotherQueueIsNotInTheWay)
{
    const Inventory two = machine({gpu_node("n0"), gpu_node("n2", 4, "other")});
    std::vector<Job> jobs = {holding(1, "n0", 4, k_now + 10min), queued(2, 9, 4, 5min),
                             queued(3, 5, 4, 5min)};
    jobs[1].partition = "other";
    EXPECT_EQ(estimate(3, jobs, two).at, k_now + 10min);
}

TEST(ExpectedStart, IsUnknownWhereAJobHasNoLimit)
{
    const Inventory one = machine({gpu_node("n0")});
    std::vector<Job> jobs = {holding(1, "n0", 4, {}), queued(2, 9, 1, 5min), queued(3, 5, 1, 5min)};
    EXPECT_FALSE(estimate(2, jobs, one).at);
    EXPECT_EQ(estimate(2, jobs, one).unknown, "job 1 has no time limit");
    jobs[0].ends_at = k_now + 1min;
    jobs[1].walltime.reset();
    jobs[1].size.gpus = {{"", 4}};
    EXPECT_EQ(estimate(3, jobs, one).unknown, "job 2, which goes first, has no time limit");
}

TEST(ExpectedStart, IsUnknownWhereSlurmDoesNotShowEnough)
{
    const Inventory one = machine({gpu_node("n0")});
    Job job = queued(2, 9, 1, 5min);
    const auto found = [&](bool complete) {
        return expected_starts({JobId{2}}, AllJobs{{job}, complete}, one, k_now).at(JobId{2});
    };
    EXPECT_EQ(found(true).at, k_now);
    EXPECT_EQ(found(false).unknown, "the jobs of other users are hidden here");
    job.size.other = "node features";
    EXPECT_EQ(found(true).unknown,
              "it asks for node features, which gpuq does not compare with the nodes");
    job.size.other.clear();
    job.reason = "QOSMaxJobsPerUserLimit";
    EXPECT_EQ(found(true).unknown, "it is held by a job limit, not by the nodes");
    job.reason = "PartitionDown";
    EXPECT_EQ(found(true).unknown, "its queue is closed");
    job.reason = "JobHeldUser";
    EXPECT_TRUE(expected_starts({JobId{2}}, AllJobs{{job}, true}, one, k_now).empty());
}

/// With a rule that compares every job with every other one at each end of a job, this would take
/// hours.
TEST(ExpectedStart, IsKnownForHundredsOfNodesAndThousandsOfJobs)
{
    std::vector<Node> nodes;
    std::vector<Job> jobs;
    for (unsigned i = 0; i < 300; ++i) {
        const std::string name = "n" + std::to_string(i);
        nodes.push_back(gpu_node(name.c_str()));
        jobs.push_back(holding(i + 1, name.c_str(), 4, k_now + std::chrono::minutes(i)));
    }
    for (unsigned i = 0; i < 3000; ++i) {
        jobs.push_back(queued(1000 + i, 9000 - i, 4, 60min));
    }
    const Inventory inventory = machine(std::move(nodes));
    EXPECT_EQ(estimate(1000, jobs, inventory).at, k_now);
    EXPECT_TRUE(estimate(3999, jobs, inventory).at);
}

} // namespace
} // namespace gpuq
