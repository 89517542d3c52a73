// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/memory_events.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

TEST(MemoryEvents, AreFoundInEitherVersionOfCgroups)
{
    EXPECT_EQ(counter_file("9:name=systemd:/\n4:cpu,memory:/slurm/job_7\n0::/\n"),
              "/sys/fs/cgroup/memory/slurm/job_7/memory.oom_control");
    EXPECT_EQ(counter_file("0::/system.slice/slurmstepd.scope/job_7\n"),
              "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.events");
    EXPECT_EQ(counter_file("nonsense"), std::nullopt);
}

TEST(MemoryEvents, AreReadFromEitherFile)
{
    EXPECT_EQ(kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3U);
    EXPECT_EQ(kills_in("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n"), 1U);
    EXPECT_EQ(kills_in("oom_kill x\n"), std::nullopt);
}

TEST(MemoryEvents, OfTheOwnCgroupCountBeforeThoseOfTheNode)
{
    EXPECT_TRUE(killed_between({1, 5}, {2, 6}));
    EXPECT_FALSE(killed_between({1, 5}, {1, 6})) << "somebody else's";
    EXPECT_TRUE(killed_between({std::nullopt, 5}, {std::nullopt, 6}));
    EXPECT_FALSE(killed_between({}, {}));
}

} // namespace
} // namespace gpuq::supervisor
