// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/teardown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::embedded {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string k_marker = "SLURM_CONF=/c/slurm.conf";

ProcessFacts process(int pid, int parent, const std::string& command,
                     std::vector<std::string> environment)
{
    return {{pid, 1}, parent, command, std::move(environment)};
}

std::vector<int> pids(const std::vector<ProcessFacts>& processes)
{
    std::vector<int> list;
    for (const ProcessFacts& one : processes) {
        list.push_back(one.id.pid);
    }
    return list;
}

TEST(Pick, TellsDaemonsJobsAndStrangersApart)
{
    const std::vector<ProcessFacts> all{
        process(10, 1, "slurmctld", {k_marker}),
        process(11, 1, "slurmd", {k_marker}),
        process(12, 1, "munged", {k_marker}),
        process(20, 1, "slurmstepd", {k_marker}),
        process(21, 20, "python3", {k_marker, "SLURMD_NODENAME=n0"}),
        process(22, 21, "worker", {}), // cleared its environment, but still has its parents
        process(23, 1, "daemonised", {k_marker, "SLURMD_NODENAME=n0"}),
        process(30, 1, "slurmctld", {"SLURM_CONF=/other/slurm.conf"}),
        process(31, 1, "bash", {k_marker}), // a user's shell with the cluster's environment
        process(32, 31, "srun", {k_marker}),
        process(33, 1, "slurmctld", {}),
    };
    const ClusterProcesses picked = pick(all, k_marker, {}, {});
    EXPECT_THAT(pids(picked.daemons), ElementsAre(10, 11, 12, 20));
    EXPECT_THAT(pids(picked.jobs), ElementsAre(21, 22, 23));
}

TEST(Pick, TakesWhatSitsInItsCgroups)
{
    const std::vector<ProcessFacts> all{
        process(20, 1, "slurmstepd", {k_marker}),
        process(24, 1, "hidden", {}), // escaped its parents and its environment
        process(25, 1, "stranger", {}),
    };
    const ClusterProcesses picked = pick(all, k_marker, {20, 24}, {});
    EXPECT_THAT(pids(picked.daemons), ElementsAre(20));
    EXPECT_THAT(pids(picked.jobs), ElementsAre(24));
}

TEST(Pick, SparesWhoAsks)
{
    const std::vector<ProcessFacts> all{
        process(20, 1, "slurmstepd", {k_marker}),
        process(21, 20, "bash", {k_marker, "SLURMD_NODENAME=n0"}),
        process(22, 21, "gpuq", {k_marker, "SLURMD_NODENAME=n0"}),
    };
    EXPECT_THAT(pick(all, k_marker, {}, {21, 22}).jobs, IsEmpty());
}

TEST(Pick, IsNotLedAstrayByACircle)
{
    // Pids were reused while /proc was read.
    const std::vector<ProcessFacts> all{process(5, 6, "a", {}), process(6, 5, "b", {})};
    EXPECT_THAT(pick(all, k_marker, {}, {}).jobs, IsEmpty());
}

} // namespace
} // namespace gpuq::embedded
