// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/job_environment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuq::supervisor {
namespace {

using Strings = std::vector<std::string>;

Run on_two_nodes()
{
    Run run{RunKey::make(Time{}, {}), "lab", "ada", "login", "1.0", Time{}, {}, {}};
    run.request.name = "train";
    run.request.nodes = 2;
    run.request.cpus = 4;
    run.request.work_dir = "/home/ada";
    return run;
}

Strings sorted(Strings arguments)
{
    std::sort(arguments.begin(), arguments.end());
    return arguments;
}

TEST(JobEnvironment, AStepSeesTheWholeJob)
{
    Environment variables({"SLURM_JOB_ID=7", "SLURM_JOB_NAME=gpuq-supervisor", "SLURM_NNODES=1",
                           "SLURM_NODELIST=n[0-1]", "SLURM_JOB_NODELIST=n0",
                           "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_ID=0", "SLURM_STEP_GPUS=0,1",
                           "SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0=4(x2)",
                           "SLURM_SRUN_COMM_PORT=1234", "HOME=/home/ada"});
    describe_job(variables, on_two_nodes());
    EXPECT_EQ(sorted(variables.texts()),
              (Strings{"HOME=/home/ada", "SLURM_CPUS_PER_TASK=4", "SLURM_JOB_CPUS_PER_NODE=4(x2)",
                       "SLURM_JOB_GPUS=0,1", "SLURM_JOB_ID=7", "SLURM_JOB_NAME=train",
                       "SLURM_JOB_NODELIST=n[0-1]", "SLURM_JOB_NUM_NODES=2", "SLURM_NNODES=2",
                       "SLURM_NODELIST=n[0-1]", "SLURM_NPROCS=2", "SLURM_NTASKS=2",
                       "SLURM_SUBMIT_DIR=/home/ada", "SLURM_SUBMIT_HOST=login",
                       "SLURM_TASKS_PER_NODE=1(x2)"}));
}

TEST(JobEnvironment, AStepOfRanksSeesHowManyThereAre)
{
    gpuq::Run run = on_two_nodes();
    run.request.tasks_per_node = 2;
    Environment variables({"SLURM_STEP_NUM_NODES=1"});
    describe_job(variables, run);
    EXPECT_EQ(variables.value("SLURM_NTASKS"), "4");
    EXPECT_EQ(variables.value("SLURM_TASKS_PER_NODE"), "2(x2)");
    EXPECT_EQ(variables.value("SLURM_CPUS_PER_TASK"), "2");
    EXPECT_EQ(variables.value("SLURM_NNODES"), "2");
}

Strings meeting(Strings variables, const gpuq::Run& run, std::optional<int> port)
{
    Environment environment(std::move(variables));
    describe_meeting(environment, run, LinkNumber{2}, JobId{30042}, port);
    return sorted(environment.texts());
}

TEST(JobEnvironment, ARunOnOneNodeMeetsThereWhateverTheShellSays)
{
    gpuq::Run run = on_two_nodes();
    run.request.nodes = 1;
    run.request.gpus.count = 4;
    const std::string id = "PET_RDZV_ID=" + run.key.text() + ".2";
    EXPECT_EQ(
        meeting({"RANK=3", "MASTER_PORT=29500", "PET_NODE_RANK=1", "HOME=/home/ada"}, run, 4321),
        (Strings{"HOME=/home/ada", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=4321",
                 "PET_MASTER_ADDR=127.0.0.1", "PET_MASTER_PORT=4321", "PET_NNODES=1",
                 "PET_NPROC_PER_NODE=4", id}));
    EXPECT_EQ(meeting({}, run, std::nullopt)[1], "MASTER_PORT=20042") << "no port could be held";
    run.request.tasks_per_node = 2;
    EXPECT_EQ(meeting({}, run, 4321), (Strings{"MASTER_ADDR=127.0.0.1", "MASTER_PORT=4321"}));
}

TEST(JobEnvironment, WhereTheUserHasSaidWhereToMeetThatHolds)
{
    gpuq::Run run = on_two_nodes();
    run.request.setup.env = {{"MASTER_PORT", "7"}, {"PET_NNODES", "1:2"}};
    EXPECT_EQ(meeting({"MASTER_PORT=7", "PET_NNODES=1:2"}, run, 4321),
              (Strings{"MASTER_PORT=7", "PET_MASTER_PORT=7", "PET_NNODES=1:2",
                       "PET_RDZV_ID=" + run.key.text() + ".2"}))
        << "the address of several nodes is start_ranks' to find";
}

TEST(JobEnvironment, ABatchJobKeepsItsOwn)
{
    const Strings before{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[0-1]", "SLURM_NNODES=2"};
    Environment variables(before);
    describe_job(variables, on_two_nodes());
    EXPECT_EQ(variables.texts(), before);
}

TEST(JobEnvironment, ABatchJobsScriptIsNoStep)
{
    Environment variables(
        {"SLURM_JOB_ID=7", "SLURM_STEPID=4294967291", "SLURM_STEP_ID=4294967291"});
    describe_job(variables, on_two_nodes());
    EXPECT_FALSE(variables.value("SLURM_STEPID"));
    EXPECT_FALSE(variables.value("SLURM_STEP_ID"));
    EXPECT_EQ(variables.value("SLURM_JOB_ID"), "7");
}

} // namespace
} // namespace gpuq::supervisor
