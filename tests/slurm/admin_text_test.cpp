// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/admin_text.h"

#include "slurm/rehearsal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = SlurmObject::Kind;

TEST(AdminText, APartitionHasWhatIsNotByDefault)
{
    // Output of Slurm 22.05.
    const auto partitions = partitions_in(
        "PartitionName=qa AllowGroups=ALL AllowAccounts=ALL AllowQos=gpuq_a AllocNodes=ALL "
        "Default=NO QoS=gpuq_b DefaultTime=00:30:00 DisableRootJobs=NO ExclusiveUser=NO "
        "GraceTime=300 Hidden=NO MaxNodes=UNLIMITED MaxTime=1-02:00:00 MinNodes=0 LLN=NO "
        "MaxCPUsPerNode=UNLIMITED Nodes=n[0-1] PriorityJobFactor=1 PriorityTier=40 RootOnly=NO "
        "ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=REQUEUE State=DOWN "
        "TotalCPUs=16 TotalNodes=2 SelectTypeParameters=NONE "
        "JobDefaults=DefCpuPerGPU=4,DefMemPerGPU=1024 DefMemPerNode=UNLIMITED "
        "MaxMemPerNode=UNLIMITED TRES=cpu=16,mem=12050M "
        "TRESBillingWeights=GRES/gpu:p100=1,GRES/gpu:k80=0.25\n");
    ASSERT_EQ(partitions.size(), 1U);
    EXPECT_EQ(partitions[0].name, "qa");
    EXPECT_EQ(partitions[0].fields,
              (std::map<std::string, std::string>{
                  {"AllowQos", "gpuq_a"},
                  {"DefCpuPerGPU", "4"},
                  {"DefMemPerGPU", "1024"},
                  {"DefaultTime", "30"},
                  {"GraceTime", "300"},
                  {"MaxTime", "1560"},
                  {"Nodes", "n[0-1]"},
                  {"PreemptMode", "REQUEUE"},
                  {"PriorityTier", "40"},
                  {"QOS", "gpuq_b"},
                  {"State", "DOWN"},
                  {"TRESBillingWeights", "GRES/gpu:k80=0.25,GRES/gpu:p100=1"}}));
}

TEST(AdminText, AReservation)
{
    const auto list = reservations_in(
        "ReservationName=dl StartTime=2026-12-07T13:00:00 EndTime=2026-12-07T17:00:00 "
        "Duration=04:00:00 Nodes=n1 NodeCnt=1 CoreCnt=8 Features=(null) PartitionName=(null) "
        "Flags=WEEKLY,SPEC_NODES TRES=cpu=8 Users=(null) Groups=(null) Accounts=lab "
        "Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n");
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0].fields,
              (std::map<std::string, std::string>{{"Accounts", "lab"},
                                                  {"Duration", "240"},
                                                  {"Flags", "WEEKLY"},
                                                  {"Nodes", "n1"},
                                                  {"StartTime", "2026-12-07T13:00:00"},
                                                  {"Users", ""}}));
    EXPECT_THAT(reservations_in("No reservations in the system\n"), IsEmpty());
    const auto by_hand =
        reservations_in("ReservationName=dl StartTime=2026-12-07T13:00:00 Duration=04:00:00 "
                        "Nodes=n1 MaxStartDelay=00:10:00 BurstBuffer=b Flags=\n");
    EXPECT_EQ(by_hand[0].fields.at("MaxStartDelay"), "00:10:00");
    EXPECT_EQ(by_hand[0].fields.at("BurstBuffer"), "b");
}

TEST(AdminText, AReservationIsChangedWhereItStands)
{
    const SlurmObject actual{Kind::reservation,
                             "dl",
                             {{"Accounts", "lab"},
                              {"Duration", "240"},
                              {"Flags", "IGNORE_JOBS,WEEKLY"},
                              {"Nodes", "n1"},
                              {"StartTime", "2026-12-07T13:00:00"},
                              {"Users", ""}},
                             0};
    EXPECT_THAT(reservation_arguments(actual, actual), IsEmpty());
    SlurmObject desired = actual;
    desired.fields["Accounts"] = "";
    desired.fields["Users"] = "ada,ben";
    desired.fields["Flags"] = "DAILY";
    desired.fields["Duration"] = "300";
    EXPECT_THAT(reservation_arguments(actual, desired),
                ElementsAre("Duration=300", "Users=ada,ben", "Accounts=", "Flags-=IGNORE_JOBS",
                            "Flags-=WEEKLY", "Flags+=DAILY"));
    EXPECT_THAT(reservation_arguments({Kind::reservation, "dl", {}, 0}, desired),
                ElementsAre("StartTime=2026-12-07T13:00:00", "Duration=300", "Nodes=n1",
                            "Users=ada,ben", "Flags+=DAILY"));
}

TEST(AdminText, Settings)
{
    const auto settings =
        settings_in("Configuration data as of 2026\nPreemptMode             = "
                    "REQUEUE\nPriorityWeightTRES      = (null)\nPriorityFlags =\n");
    ASSERT_EQ(settings.size(), 3U);
    EXPECT_EQ(settings[0].fields.at("value"), "REQUEUE");
    EXPECT_EQ(settings[1].fields.at("value"), "");
}

TEST(AdminText, SettingsOfSlurm24AreReadAsThoseOf22)
{
    const auto settings =
        settings_in("PreemptType             = (null)\nPriorityFavorSmall      = no\n");
    ASSERT_EQ(settings.size(), 2U);
    EXPECT_EQ(settings[0].fields.at("value"), "preempt/none");
    EXPECT_EQ(settings[1].fields.at("value"), "No");
}

TEST(AdminText, GpusAndThreadsOfNodes)
{
    EXPECT_THAT(gpu_nodes_in("NodeName=n1 Arch=x Gres=gpu:k80:4 Boot=1\nNodeName=n2 Gres=(null)\n"),
                ElementsAre("n1"));
    EXPECT_THAT(
        threads_in("NodeName=n1 Boards=1 ThreadsPerCore=2 X=1\nNodeName=n2 ThreadsPerCore=x\n"),
        ElementsAre(testing::Pair("n1", 2)));
}

TEST(AdminText, OtherFieldsOfPartitionsAndNodesAreTexts)
{
    EXPECT_THAT(
        other_partition_fields_in("PartitionName=gpu MaxTime=60 Hidden=YES TotalNodes=3 "
                                  "ResumeTimeout=600 SuspendTime=INFINITE New=NO "
                                  "SelectTypeParameters=NONE MaxCPUsPerSocket=4\n\n"),
        ElementsAre("partition gpu: MaxCPUsPerSocket=4", "partition gpu: ResumeTimeout=600"));
    std::string nodes;
    for (const char* const name : {"n1", "n2", "n3", "n4", "n5", "n6"}) {
        nodes += std::string("NodeName=") + name + " AvailableFeatures=ib Weight=1 Owner=N/A\n";
    }
    EXPECT_THAT(
        other_node_fields_in(nodes + "NodeName=x AvailableFeatures=(null) Weight=50\n"),
        ElementsAre("node n1,n2,n3,n4 and 2 more: AvailableFeatures=ib", "node x: Weight=50"));
}

TEST(AdminText, JobsThatMayRunLongerThanTheirPartition)
{
    using namespace std::chrono_literals;
    const std::map<std::string, std::chrono::seconds> longer =
        running_longer({{"gpu-lab", 5min}, {"lab", 1h}}, "1|gpu-lab|4:59\n"
                                                         "2|gpu-lab|5:01\n"
                                                         "3|gpu-lab|1-00:00:00\n"
                                                         "4|lab|59:59\n"
                                                         "5|lab|1:00:01\n"
                                                         "6|main|7-00:00:00\n"
                                                         "7|lab|UNLIMITED\n"
                                                         "8|lab|INVALID\n"
                                                         "9|lab|\n"
                                                         "10|lab\n");
    EXPECT_THAT(longer, ElementsAre(std::pair("2", 300s), std::pair("3", 300s),
                                    std::pair("5", 3600s), std::pair("7", 3600s)));
}

TEST(Rehearsal, ReachesNobody)
{
    const auto included = [](const std::string& name) {
        return name == "nodes.conf" ? "NodeName=n[0-3] NodeAddr=10.0.0.[1-4] Port=6818 CPUs=8 \\\n"
                                      " Gres=gpu:4 # four\n"
                                    : "PartitionName=calib Nodes=n0 QOS=known AllowQos=unknown\n";
    };
    const std::string conf = rehearsal_conf("ClusterName=c\nSlurmctldHost=real\n"
                                            "StateSaveLocation=/var/real\nSuspendProgram=/bin/off\n"
                                            "AccountingStorageHost=db\ninclude nodes.conf\n"
                                            "Include /etc/slurm/gpuq/policy.conf\n",
                                            included, {"/tmp/r", "here", 12345, "x known y"});
    EXPECT_EQ(conf, "ClusterName=c\n"
                    "NodeName=n[0-3] CPUs=8 Gres=gpu:4 NodeAddr=127.0.0.1 Port=4\n"
                    "PartitionName=calib Nodes=n0 QOS=known \n"
                    "SlurmctldHost=here(127.0.0.1)\n"
                    "SlurmctldPort=12345\n"
                    "StateSaveLocation=/tmp/r/state\n"
                    "SlurmctldPidFile=/tmp/r/slurmctld.pid\n"
                    "SlurmctldDebug=info\n"
                    "AccountingStorageHost=127.0.0.1\n"
                    "AccountingStoragePort=4\n"
                    "CommunicationParameters=NoCtldInAddrAny\n");
}

} // namespace
} // namespace gpuq::slurm
