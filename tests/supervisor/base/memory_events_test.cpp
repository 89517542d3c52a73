// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/memory_events.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

constexpr const char* k_hybrid =
    "30 23 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n"
    "31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "33 30 0:29 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";
constexpr const char* k_unified = "31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

TEST(MemoryEvents, TheJobsCgroupIsFoundInEitherVersionAndOnHybridHosts)
{
    EXPECT_EQ(
        memory_cgroup("9:name=systemd:/\n4:cpu,memory:/slurm_n0/uid_5/job_7/step_0/task_0\n0::/\n",
                      k_hybrid),
        (MemoryCgroup{"/sys/fs/cgroup/memory/slurm_n0/uid_5/job_7", false}));
    EXPECT_EQ(
        memory_cgroup("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", k_unified),
        (MemoryCgroup{"/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7", true}));
    EXPECT_EQ(memory_cgroup("0::/slurm.scope/job_7\n",
                            "31 30 0:27 /slurm.scope /cgroup rw - cgroup2 cgroup2 rw\n"),
              (MemoryCgroup{"/cgroup/job_7", true}))
        << "a part of the tree, mounted elsewhere";
}

TEST(MemoryEvents, ACgroupThatIsNotAJobsCountsForNobody)
{
    EXPECT_EQ(memory_cgroup("4:memory:/system.slice/slurmd.service\n0::/\n", k_hybrid),
              std::nullopt);
    EXPECT_EQ(memory_cgroup("0::/user.slice/job_of_mine/x\n", k_unified), std::nullopt);
    EXPECT_EQ(memory_cgroup("0::/job_/x\n", k_unified), std::nullopt);
    EXPECT_EQ(memory_cgroup("4:memory:/slurm/uid_5/job_7\n", k_unified), std::nullopt);
    EXPECT_EQ(memory_cgroup("nonsense", "nonsense"), std::nullopt);
}

TEST(MemoryEvents, AreReadFromEitherFile)
{
    EXPECT_EQ(kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3U);
    EXPECT_EQ(kills_in("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n"), 1U);
    EXPECT_EQ(kills_in("oom_kill x\n"), std::nullopt);
}

TEST(MemoryEvents, OfAJobAreThoseOfAllItsSteps)
{
    MemoryWatch watch({{{{"job", 0}, {"job/0", 1}}}, 5});
    EXPECT_EQ(watch.add({{{{"job", 0}, {"job/0", 1}}}, 6}), (MemoryKills{0, 0})) << "another job's";
    EXPECT_EQ(watch.add({{{{"job", 0}, {"job/0", 2}, {"job/1", 3}}}, 9}), (MemoryKills{4, 0}));
    EXPECT_EQ(watch.add({{{{"job", 0}, {"job/0", 2}}}, 9}), (MemoryKills{0, 0})) << "a step ended";
    EXPECT_EQ(watch.all(), (MemoryKills{4, 0}));
    EXPECT_TRUE(watch.is_exact());
}

TEST(MemoryEvents, AreNearbyWhereNothingCountsForTheJob)
{
    MemoryWatch watch({std::nullopt, 5});
    EXPECT_EQ(watch.add({std::nullopt, 7}), (MemoryKills{0, 2}));
    EXPECT_EQ(watch.all(), (MemoryKills{0, 2}));
    EXPECT_FALSE(watch.is_exact());
    MemoryWatch blind({});
    EXPECT_EQ(blind.add({}), MemoryKills{});
}

} // namespace
} // namespace gpuq::supervisor
