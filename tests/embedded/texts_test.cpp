// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/texts.h"

#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace gpuq::embedded {
namespace {

using testing::HasSubstr;
using testing::Not;

const Ports k_ports{20001, 20002, {20003, 20004}};
const Places k_places{"/home/ada/cluster", "/tmp/gpuq-cluster-x"};

ClusterSpec two_nodes()
{
    ClusterSpec spec;
    spec.nodes = 2;
    spec.gpus = {{"k80", "/dev/tty0"}, {"k80", "/dev/tty1"}};
    spec.stand_ins = true;
    spec.cpus = 6;
    spec.memory_mib = 6000;
    spec.user = "ada";
    return spec;
}

TEST(SlurmConf, GivesEveryNodeItsPortAndItsGpus)
{
    const std::string text = slurm_conf(two_nodes(), k_ports, k_places, ClientsListen::anywhere);
    EXPECT_THAT(text, HasSubstr("NodeName=n0 NodeHostname=localhost NodeAddr=127.0.0.1 Port=20003 "
                                "CPUs=6 RealMemory=6000 Gres=gpu:k80:2 State=UNKNOWN\n"));
    EXPECT_THAT(text, HasSubstr("NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=20004 "
                                "CPUs=6 RealMemory=6000 Gres=gpu:k80:2 State=UNKNOWN\n"));
}

/// Whole hours in slurm.conf notation.
std::string in_slurm_conf(std::chrono::minutes time)
{
    const auto hours = time.count() / 60;
    return hours < 24 ? fmt::format("{}:00:00", hours)
                      : fmt::format("{}-{:02}:00:00", hours / 24, hours % 24);
}

TEST(SlurmConf, HasThePartitionsOfTheWorkstationPolicy)
{
    std::ifstream file(GPUQ_POLICIES_DIR "/workstation.yaml");
    std::ostringstream yaml;
    yaml << file.rdbuf();
    const policy::Policy policy = policy::read_policy(yaml.str(), "workstation.yaml")->policy;
    const std::string text = slurm_conf(two_nodes(), k_ports, k_places, ClientsListen::anywhere);
    ASSERT_EQ(policy.queues.size(), 2U);
    for (const policy::Queue& queue : policy.queues) {
        const bool is_default = policy.default_queue->value == queue.name;
        EXPECT_THAT(text, HasSubstr(fmt::format("PartitionName={} Nodes=ALL{} MaxTime={} "
                                                "DefaultTime={} ",
                                                queue.name, is_default ? " Default=YES" : "",
                                                in_slurm_conf(queue.max_time.value),
                                                in_slurm_conf(queue.default_time.value))));
    }
}

TEST(SlurmConf, GivesEveryGpuItsShareOfCoresAndMemory)
{
    const std::string text = slurm_conf(two_nodes(), k_ports, k_places, ClientsListen::anywhere);
    EXPECT_THAT(text, HasSubstr("PartitionName=calibration Nodes=ALL Default=YES MaxTime=2:00:00 "
                                "DefaultTime=2:00:00 DefCpuPerGPU=3 DefMemPerGPU=3000\n"));
    EXPECT_THAT(text, HasSubstr("PartitionName=gpu Nodes=ALL MaxTime=2-00:00:00 "
                                "DefaultTime=1-00:00:00 DefCpuPerGPU=3 DefMemPerGPU=3000\n"));
    // Without it, a job without GPUs would get the memory of the whole node.
    EXPECT_THAT(text, HasSubstr("DefMemPerCPU=1000\n"));
}

TEST(SlurmConf, LetsCommandsListenOnLoopbackOnlyWhereTheHostNameAllowsIt)
{
    const std::string parameters = "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n";
    EXPECT_THAT(slurm_conf(two_nodes(), k_ports, k_places, ClientsListen::on_loopback),
                HasSubstr(parameters));
    // If the host name resolves to 127.0.1.1 or to the network address, a daemon could not reach a
    // command that listens on 127.0.0.1.
    EXPECT_THAT(slurm_conf(two_nodes(), k_ports, k_places, ClientsListen::anywhere),
                Not(HasSubstr("NoInAddrAny")));
}

TEST(SlurmConf, AccountsForGpusAndComments)
{
    const std::string text = slurm_conf(two_nodes(), k_ports, k_places, ClientsListen::anywhere);
    EXPECT_THAT(text, HasSubstr("AccountingStorageTRES=gres/gpu\n"));
    EXPECT_THAT(text, HasSubstr("AccountingStoreFlags=job_comment\n"));
    EXPECT_THAT(text, HasSubstr("AccountingStoragePort=20002\n"));
}

TEST(SlurmConf, OfAClusterWithoutAccountingNamesNoSlurmdbd)
{
    ClusterSpec spec = two_nodes();
    spec.accounting = false;
    EXPECT_THAT(slurm_conf(spec, k_ports, k_places, ClientsListen::anywhere),
                Not(HasSubstr("AccountingStor")));
}

TEST(SlurmConf, TracksJobsByCgroupsWhereTheyCanBeUsed)
{
    ClusterSpec spec = two_nodes();
    EXPECT_THAT(slurm_conf(spec, k_ports, k_places, ClientsListen::anywhere),
                HasSubstr("ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"));
    EXPECT_THAT(cgroup_conf(spec), Not(HasSubstr("ConstrainDevices=yes")));
    spec.confinement = Confinement::cgroups;
    spec.cgroup_plugin = "cgroup/v1";
    EXPECT_THAT(cgroup_conf(spec), HasSubstr("CgroupPlugin=cgroup/v1\n"));
    EXPECT_THAT(slurm_conf(spec, k_ports, k_places, ClientsListen::anywhere),
                HasSubstr("ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\n"));
    EXPECT_THAT(cgroup_conf(spec), HasSubstr("ConstrainDevices=yes\nConstrainRAMSpace=yes\n"));
    EXPECT_THAT(cgroup_conf(spec), HasSubstr("ConstrainCores=no\n"));
    spec.stand_ins = false;
    EXPECT_THAT(cgroup_conf(spec), HasSubstr("ConstrainCores=yes\n"));
}

TEST(CgroupConf, LoadsNoPluginThatNeedsCgroupsWhenNothingUsesThem)
{
    ClusterSpec spec = two_nodes();
    for (const char* release : {"24.05", "24.11", "26.05"}) {
        spec.slurm_release = release;
        EXPECT_EQ(cgroup_conf(spec), "CgroupPlugin=disabled\n") << release;
    }
    for (const char* release : {"", "22.05", "23.11"}) {
        spec.slurm_release = release;
        EXPECT_EQ(cgroup_conf(spec), "CgroupPlugin=cgroup/v1\n") << release;
    }
}

TEST(SlurmConf, EndsWithTheLinesOfItsUser)
{
    ClusterSpec spec = two_nodes();
    spec.extra_lines = {"KillWait=5", "MaxJobCount=20000"};
    EXPECT_TRUE(slurm_conf(spec, k_ports, k_places, ClientsListen::anywhere)
                    .ends_with("KillWait=5\nMaxJobCount=20000\n"));
}

TEST(SlurmConf, OfANodeWithoutGpusNamesNone)
{
    ClusterSpec spec = two_nodes();
    spec.gpus.clear();
    const std::string text = slurm_conf(spec, k_ports, k_places, ClientsListen::anywhere);
    EXPECT_THAT(text, Not(HasSubstr("Gres=")));
    EXPECT_THAT(text, Not(HasSubstr("DefMemPerGPU")));
}

TEST(SlurmConf, UnderAPolicyHasWhatThatRequiresAndIncludesTheRest)
{
    ClusterSpec spec = two_nodes();
    spec.policy = true;
    spec.named = {{"g1", {{"k80", "/dev/tty0"}}}, {"v1", {{"v100", "/dev/tty0"}}, 2}};
    const std::string text = slurm_conf(spec, k_ports, k_places, ClientsListen::anywhere);
    EXPECT_THAT(text, HasSubstr("NodeName=g1 "));
    EXPECT_THAT(text, HasSubstr("ThreadsPerCore=2 "));
    EXPECT_THAT(text, HasSubstr(fmt::format("CPUs={} ", spec.cpus)));
    EXPECT_THAT(text, HasSubstr("Gres=gpu:v100:1"));
    EXPECT_THAT(text, HasSubstr("JobSubmitPlugins=lua\n"));
    EXPECT_THAT(text, HasSubstr("PriorityType=priority/multifactor\n"));
    EXPECT_THAT(text, HasSubstr("HealthCheckProgram=" + k_places.node_probe() + "\n"));
    EXPECT_THAT(text, HasSubstr("AccountingStorageEnforce=associations,limits,qos,safe\n"));
    EXPECT_THAT(text, HasSubstr("AccountingStorageTRES=gres/gpu,gres/gpu:k80,gres/gpu:v100\n"));
    EXPECT_THAT(text, HasSubstr("bf_one_resv_per_job,preempt_youngest_first\n"));
    EXPECT_THAT(text, HasSubstr("include " + k_places.policy_conf() + "\n"));
    EXPECT_THAT(text, Not(HasSubstr("PartitionName")));
}

TEST(SlurmConf, OfASiteHasItsPartitionsAndItsNodes)
{
    ClusterSpec spec = two_nodes();
    spec.named = {{"g1", {{"k80", "/dev/tty0"}}, 1, "CPUs=64 RealMemory=5 Feature=fast"}};
    spec.nodes = 1;
    spec.conf_lines = {"PartitionName=own Nodes=g1", "KillWait=7"};
    const std::string text = slurm_conf(spec, k_ports, k_places, ClientsListen::anywhere);
    EXPECT_THAT(text, HasSubstr(" CPUs=64 RealMemory=5 Feature=fast Gres=gpu:k80:1 State="));
    EXPECT_THAT(text, HasSubstr("\nPartitionName=own Nodes=g1\nKillWait=7\n"));
    EXPECT_THAT(text, Not(HasSubstr("PartitionName=gpu")));
    EXPECT_THAT(text, Not(HasSubstr("DefMemPerCPU")));
}

TEST(DatabaseSql, CreatesTheDatabaseOfSlurmdbd)
{
    EXPECT_EQ(database_sql(), "CREATE DATABASE slurm_acct;\n");
    EXPECT_THAT(slurmdbd_conf(two_nodes(), k_ports, k_places),
                HasSubstr("\nStorageLoc=slurm_acct\n"));
}

TEST(GresConf, NamesADevicePerGpuAndNode)
{
    EXPECT_EQ(gres_conf(two_nodes()), "AutoDetect=off\n"
                                      "NodeName=n0 Name=gpu Type=k80 File=/dev/tty0\n"
                                      "NodeName=n0 Name=gpu Type=k80 File=/dev/tty1\n"
                                      "NodeName=n1 Name=gpu Type=k80 File=/dev/tty0\n"
                                      "NodeName=n1 Name=gpu Type=k80 File=/dev/tty1\n");
}

TEST(SlurmConf, DividesGpusIntoShards)
{
    ClusterSpec spec = two_nodes();
    EXPECT_THAT(slurm_conf(spec, k_ports, k_places, ClientsListen::anywhere),
                HasSubstr("GresTypes=gpu\n"));
    spec.shards = 4;
    const std::string text = slurm_conf(spec, k_ports, k_places, ClientsListen::anywhere);
    EXPECT_THAT(text, HasSubstr("GresTypes=gpu,shard\n"));
    EXPECT_THAT(text, HasSubstr("AccountingStorageTRES=gres/gpu,gres/shard\n"));
    EXPECT_THAT(text, HasSubstr(" Gres=gpu:k80:2,shard:8 "));
    EXPECT_THAT(gres_conf(spec), HasSubstr("NodeName=n1 Name=gpu Type=k80 File=/dev/tty1\n"
                                           "NodeName=n1 Name=shard Count=8\n"));
}

TEST(Gres, CountsGpusByModel)
{
    EXPECT_EQ(gres_of({}, 0), "");
    EXPECT_EQ(gres_of({{"", "/dev/nvidia0"}}, 0), "gpu:1");
    EXPECT_EQ(
        gres_of({{"a100", "/dev/nvidia0"}, {"a100", "/dev/nvidia1"}, {"v100", "/dev/nvidia2"}}, 0),
        "gpu:a100:2,gpu:v100:1");
}

TEST(Gres, CountsTheSharesOfAllGpus)
{
    EXPECT_EQ(gres_of({{"k80", "/dev/tty0"}, {"k80", "/dev/tty1"}}, 4), "gpu:k80:2,shard:8");
    EXPECT_EQ(gres_of({}, 4), "");
}

TEST(Places, OfAPersonFollowXdg)
{
    EXPECT_EQ(default_dir(0, "/x", "/root"), "/var/lib/gpuq/cluster");
    EXPECT_EQ(default_dir(1000, "/x", "/home/ada"), "/x/gpuq/cluster");
    EXPECT_EQ(default_dir(1000, "", "/home/ada"), "/home/ada/.local/state/gpuq/cluster");
    EXPECT_EQ(default_dir(1000, "relative", "/home/ada"), "/home/ada/.local/state/gpuq/cluster");
    EXPECT_EQ(default_dir(1000, nullptr, nullptr), std::nullopt);
}

} // namespace
} // namespace gpuq::embedded
