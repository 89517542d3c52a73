// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sampler/run_use.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace gpuq::supervisor {
namespace {

TEST(RunUse, CountsTheWholeJobWhateverSlurmCallsIt)
{
    EXPECT_EQ(job_cgroup("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n").unified,
              "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7");
    EXPECT_EQ(job_cgroup("0::/slurm/s1ABC2D3/step_batch/user/task_0\n").unified,
              "/sys/fs/cgroup/slurm/s1ABC2D3");
    const JobCgroup first = job_cgroup("9:cpu,cpuacct:/slurm/uid_5/job_7/step_0/task_0\n"
                                       "4:memory:/slurm/uid_5/job_7/step_0/task_0\n"
                                       "3:blkio:/system.slice/slurmd.service\n0::/\n");
    EXPECT_EQ(first.cpu, "/sys/fs/cgroup/cpuacct/slurm/uid_5/job_7");
    EXPECT_EQ(first.memory, "/sys/fs/cgroup/memory/slurm/uid_5/job_7");
    EXPECT_EQ(first.transfers, "") << "slurmd's own is not the job's";
    EXPECT_EQ(first.unified, "");
}

TEST(RunUse, TakesNoOtherCgroupForTheJobs)
{
    for (const char* text : {"", "nonsense", "0::/\n", "0::/user.slice/session-3.scope\n"}) {
        EXPECT_EQ(job_cgroup(text).unified, "") << text;
    }
}

TEST(RunUse, ReadsTheKernelsFiles)
{
    EXPECT_EQ(value_after("usage_usec 1200\nuser_usec 7\n", "user_usec"), 7U);
    EXPECT_EQ(value_after("usage_usec x\n", "usage_usec"), std::nullopt);
    EXPECT_EQ(value_after("read_bytes: 4096\n", "read_bytes:"), 4096U);
    const char* second = "8:0 rbytes=100 wbytes=20 rios=1\n8:16 rbytes=5 wbytes=1\n";
    EXPECT_EQ(io_stat_sum(second, "rbytes"), 105U);
    EXPECT_EQ(io_stat_sum(second, "wbytes"), 21U);
    const char* first = "8:0 Read 100\n8:0 Write 20\n8:16 Read 5\nTotal 125\n";
    EXPECT_EQ(io_stat_sum(first, "Read"), 105U);
    EXPECT_EQ(io_stat_sum(first, "Write"), 20U);
    EXPECT_EQ(io_stat_sum("", "rbytes"), 0U) << "a job that has read nothing";
    EXPECT_EQ(io_stat_sum("8:0 rbytes=x\n", "rbytes"), std::nullopt);
    const char* net = "Inter-|   Receive\n face |bytes    packets\n"
                      "    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
                      "  eth0: 1000 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0\n"
                      "   ib0:2000 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n";
    EXPECT_EQ(net_sum(net, false), 3000U);
    EXPECT_EQ(net_sum(net, true), 330U);
    EXPECT_EQ(net_sum("garbage", true), std::nullopt);
}

TEST(RunUse, SeesWhatThisProcessUses)
{
    RunUse use(::getppid());
    const RunSample sample = use.measure(std::chrono::steady_clock::now());
    ASSERT_TRUE(sample[RunMetric::memory].known());
    EXPECT_GT(*sample[RunMetric::memory].value(), 100'000U);
    EXPECT_TRUE(sample[RunMetric::cpu].known());
}

} // namespace
} // namespace gpuq::supervisor
