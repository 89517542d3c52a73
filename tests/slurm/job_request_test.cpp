// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/job_request.h"

#include "ports/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

namespace gpuq::slurm {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

JobSpec two_nodes()
{
    JobSpec spec;
    spec.name = "train";
    spec.partition = "gpu";
    spec.comment = "gpuq:KEY";
    spec.work_dir = "/work";
    spec.walltime = std::chrono::minutes(90);
    spec.nodes = 2;
    spec.gpus_per_node = 3;
    spec.gpu_model = "k80";
    spec.cpus_per_node = 4;
    spec.memory_mib_per_node = 1000;
    return spec;
}

TEST(JobRequest, AsksForNodesWithOneTaskEach)
{
    const JobSpec spec = two_nodes();
    JobRequest request(spec);
    const job_desc_msg_t& message = *request.allocation();
    EXPECT_STREQ(message.name, "train");
    EXPECT_STREQ(message.comment, "gpuq:KEY");
    EXPECT_EQ(message.min_nodes, 2U);
    EXPECT_EQ(message.max_nodes, 2U);
    EXPECT_EQ(message.num_tasks, 2U);
    EXPECT_EQ(message.min_cpus, 8U);
    EXPECT_EQ(message.cpus_per_task, 4U);
    EXPECT_EQ(message.pn_min_memory, 1000U);
    EXPECT_EQ(message.time_limit, 90U);
    EXPECT_EQ(message.requeue, 0U);
    EXPECT_EQ(message.immediate, 1U);
    EXPECT_EQ(message.other_port, 0U);
    EXPECT_EQ(std::string(message.tres_per_node), std::string(k_gres_prefix) + "gpu:k80:3");
}

TEST(JobRequest, AsksForAShareInsteadOfGpus)
{
    JobSpec spec;
    spec.gpus_per_node = 1;
    spec.share = GpuShare{GpuShare::Kind::shard, 2, 4, {}, {}};
    EXPECT_EQ(gpu_text(spec), std::string(k_gres_prefix) + "shard:2");
}

TEST(JobRequest, SharesTheCoresOfANodeAmongItsTasks)
{
    JobSpec spec;
    spec.nodes = 2;
    spec.tasks_per_node = 4;
    {
        JobRequest request(spec);
        const job_desc_msg_t& message = *request.allocation();
        EXPECT_EQ(message.num_tasks, 8U);
        EXPECT_EQ(message.ntasks_per_node, 4);
        EXPECT_EQ(message.min_cpus, 8U);
    }
    spec.cpus_per_node = 8;
    JobRequest request(spec);
    const job_desc_msg_t& message = *request.allocation();
    EXPECT_EQ(message.cpus_per_task, 2);
    EXPECT_EQ(message.pn_min_cpus, 8);
    EXPECT_EQ(message.min_cpus, 16U);
}

TEST(JobRequest, LeavesDefaultsToThePartition)
{
    JobSpec spec;
    spec.gpus_per_node = 1;
    JobRequest request(spec);
    const job_desc_msg_t& message = *request.allocation();
    EXPECT_EQ(message.time_limit, NO_VAL);
    EXPECT_EQ(message.cpus_per_task, NO_VAL16);
    EXPECT_EQ(message.pn_min_memory, NO_VAL64);
    EXPECT_EQ(message.account, nullptr);
    EXPECT_EQ(message.qos, nullptr);
    EXPECT_EQ(message.dependency, nullptr);
    spec.gpus_per_node = 0;
    EXPECT_EQ(gpu_text(spec), "");
}

TEST(JobRequest, ABatchJobCarriesItsScriptAndEnvironment)
{
    JobSpec spec = two_nodes();
    spec.output = "/state/100%/slurm.log";
    spec.after_ok = JobId{7};
    JobRequest request(spec);
    const mode_t before = ::umask(027);
    const job_desc_msg_t& message =
        *request.batch("#!/bin/sh\n", {"A=b", "SLURM_JOB_ID=1", "SLURM_CONF=/c", "TMPDIR=/login"});
    ::umask(before);
    EXPECT_STREQ(message.script, "#!/bin/sh\n");
    EXPECT_STREQ(message.std_out, "/state/100%%/slurm.log");
    EXPECT_STREQ(message.dependency, "afterok:7");
    EXPECT_NE(message.bitflags & KILL_INV_DEP, 0U);
    EXPECT_EQ(message.open_mode, OPEN_MODE_APPEND);
    const std::vector<std::string> environment(message.environment,
                                               message.environment + message.env_size);
    EXPECT_THAT(environment, Contains("A=b"));
    EXPECT_THAT(environment, Contains("SLURM_CONF=/c"));
    EXPECT_THAT(environment, Contains("SLURM_SUBMIT_DIR=/work"));
    EXPECT_THAT(environment, Contains("SLURM_UMASK=0027"));
    EXPECT_THAT(environment, Not(Contains(StartsWith("SLURM_RLIMIT_")))); // the node's limits apply
    EXPECT_THAT(environment, Not(Contains(StartsWith("TMPDIR="))));
    EXPECT_THAT(environment, Not(Contains("SLURM_JOB_ID=1")));
    EXPECT_EQ(message.environment[message.env_size], nullptr);
}

TEST(JobRequest, FileNamesAreTakenLiterally)
{
    EXPECT_EQ(literal_file_name("/a/b"), "/a/b");
    EXPECT_EQ(literal_file_name("/100%j"), "/100%%j");
    EXPECT_EQ(literal_file_name("/a\\b%j"), "/a\\\\b%j"); // the backslash disables the %
}

} // namespace
} // namespace gpuq::slurm
