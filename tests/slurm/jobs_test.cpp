// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/jobs.h"

#include "ports/job.h"
#include "slurm/compat.h"

#include <gtest/gtest.h>

namespace gpuq::slurm {
namespace {

TEST(SlurmJobs, AJobWhoseProcessesAreEndingIsCompleting)
{
    EXPECT_EQ(state_of(JOB_RUNNING), JobState::running);
    EXPECT_EQ(state_of(JOB_CANCELLED), JobState::cancelled);
    EXPECT_EQ(state_of(JOB_OOM), JobState::out_of_memory);
    EXPECT_EQ(state_of(JOB_CANCELLED | JOB_COMPLETING), JobState::completing);
    EXPECT_EQ(state_of(JOB_END + 1), JobState::unknown);
}

TEST(SlurmJobs, ASignalIs128AndItsNumber)
{
    EXPECT_EQ(exit_status_of_wait(0), 0);
    EXPECT_EQ(exit_status_of_wait(3U << 8), 3);
    EXPECT_EQ(exit_status_of_wait(9), 137);
    EXPECT_EQ(exit_status_of_wait(11 | 0x80), 139); // with a core dump
}

TEST(SlurmJobs, CountsGpusInAccountedResources)
{
    EXPECT_EQ(gpus_in_tres("cpu=4,mem=16G,node=1,billing=4,gres/gpu=2,gres/gpu:k80=2"), 2);
    EXPECT_EQ(gpus_in_tres("cpu=4"), std::nullopt);
    EXPECT_EQ(gpus_in_tres(""), std::nullopt);
}

TEST(SlurmJobs, NoTimeIsNoTime)
{
    EXPECT_EQ(time_of(0), std::nullopt);
    EXPECT_EQ(time_of(NO_VAL), std::nullopt);
    EXPECT_EQ(time_of(INFINITE), std::nullopt);
    EXPECT_EQ(time_of(1000), Time(std::chrono::seconds(1000)));
}

} // namespace
} // namespace gpuq::slurm
