// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/giving_way.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

constexpr std::uint32_t k_me = 1000, k_other = 1001, k_third = 1002;
constexpr JobId k_worker{7};

Job running(std::uint32_t uid, int gpus, const std::string& queue = "gpu")
{
    Job job;
    job.id = JobId{100};
    job.uid = uid;
    job.state = JobState::running;
    job.partition = queue;
    job.gpus = gpus;
    return job;
}

Job waiting(std::uint32_t uid, const std::string& queue = "gpu", int gpus = 1)
{
    Job job = running(uid, gpus, queue);
    job.state = JobState::pending;
    job.reason = "Resources";
    return job;
}

/// For the worker of a sweep, which holds a GPU.
bool gives_way(const std::vector<Job>& jobs, int more = 0)
{
    AllJobs all{jobs};
    all.jobs.push_back(running(k_me, 1));
    all.jobs.back().id = k_worker;
    return must_give_way(all, k_worker, more);
}

TEST(GivingWay, IsForJobsThatWait)
{
    EXPECT_FALSE(gives_way({}));
    EXPECT_FALSE(gives_way({running(k_other, 1)}, 4));
    EXPECT_TRUE(gives_way({waiting(k_other)}));
    Job held = waiting(k_other);
    held.reason = "JobHeldUser";
    EXPECT_FALSE(gives_way({held}));
    EXPECT_FALSE(must_give_way({{waiting(k_other)}}, k_worker, 0)) << "it is not known";
}

TEST(GivingWay, EndsWhenAnotherUserHoldsAsManyGpus)
{
    EXPECT_TRUE(gives_way({waiting(k_other), running(k_me, 3), running(k_other, 3)}));
    EXPECT_FALSE(gives_way({waiting(k_other), running(k_me, 3), running(k_other, 4)}));
    EXPECT_TRUE(gives_way({waiting(k_other), running(k_me, 3), running(k_other, 4)}, 1))
        << "with another worker";
    EXPECT_FALSE(gives_way({waiting(k_third), running(k_other, 1), running(k_third, 0)}));
    EXPECT_TRUE(gives_way({waiting(k_other), running(k_other, 8, "large")})) << "in this queue";
}

TEST(GivingWay, IsForTheUsersOwnRunsAsWell)
{
    EXPECT_TRUE(gives_way({waiting(k_me), running(k_other, 8)}));
    Job worker = waiting(k_me);
    worker.comment = "gpuq:0123:sweep";
    EXPECT_FALSE(gives_way({worker}));
}

TEST(GivingWay, IsOnlyForJobsThatCouldUseTheGpu)
{
    EXPECT_FALSE(gives_way({waiting(k_other, "cpu")}));
    EXPECT_FALSE(gives_way({waiting(k_other, "gpu", 0)}));
    EXPECT_TRUE(gives_way({waiting(k_other, "large,gpu")}));
    Job part = waiting(k_other, "gpu", 0);
    part.size.share = GpuShare{};
    EXPECT_TRUE(gives_way({part}));
}

} // namespace
} // namespace gpuq
