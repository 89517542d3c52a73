// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/lacking.h"

#include "runs/queues/machine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using fakes::gpu_node;
using fakes::holding;
using fakes::machine;
using fakes::queued;

/// A job with one of two shards of the GPU; on the node "n0" if it runs.
Job with_a_shard(Job job)
{
    job.gpus = 0;
    job.held.whole.clear();
    job.size.gpus.clear();
    job.size.share = GpuShare{GpuShare::Kind::shard, 1, {}, {}, {}};
    return job;
}

TEST(LackingBesideGpus, NamesCoresAndMemoryOfNodesWithFreeGpus)
{
    Node divided = gpu_node("n0", 1);
    divided.shares = {{GpuShare::Kind::shard, "k80", 2, 2, 1, 1}};
    std::vector<Job> jobs = {with_a_shard(holding(1, "n0", 1, k_now + 40min)),
                             with_a_shard(queued(3, 9, 1, 60min))};
    jobs[0].size.cpus = divided.cpus - 2;
    jobs[0].size.memory_mib = divided.memory_mib - 1024;
    const auto lacking = [&](int cpus, std::uint64_t memory_mib) {
        jobs[1].size.cpus = cpus;
        jobs[1].size.memory_mib = memory_mib;
        return lacking_beside_gpus(jobs[1], {jobs, true}, machine({divided}), k_now);
    };
    EXPECT_EQ(lacking(2, 1024), ""); // it fits
    EXPECT_EQ(lacking(3, 1024), "cores");
    EXPECT_EQ(lacking(2, 1025), "memory");
    EXPECT_EQ(lacking(3, 1025), "cores and memory");
    EXPECT_EQ(lacking_beside_gpus(jobs[1], {jobs, false}, machine({divided}), k_now), "");
    jobs[1].size.share->parts = 2; // no share is free
    EXPECT_EQ(lacking(3, 1025), "");
    jobs[1] = queued(3, 9, 1, 60min); // nor is a whole GPU
    EXPECT_EQ(lacking(3, 1025), "");
    jobs[0].held.shares.clear();
    jobs[0].size.share.reset();
    EXPECT_EQ(lacking(3, 1024), "cores");
}

} // namespace
} // namespace gpuq
