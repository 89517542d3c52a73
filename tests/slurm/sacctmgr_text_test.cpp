// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/sacctmgr_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = SlurmObject::Kind;

TEST(SacctmgrText, OnlyWhatIsNotSoIsSetInAQos)
{
    std::string row = "q";
    for (const QosField& field : qos_fields()) {
        row += "|" + std::string(field.name == "MaxTRES"       ? "gres/gpu=4,node=1"
                                 : field.name == "Flags"       ? "DenyOnLimit"
                                 : field.name == "MaxSubmitPU" ? "20"
                                                               : field.unset);
    }
    const auto list = qos_in(row + "\n");
    ASSERT_EQ(list.size(), 1U);
    SlurmObject desired = list[0];
    EXPECT_EQ(desired.fields.size(), 3U);
    EXPECT_THAT(qos_arguments(list[0], desired), IsEmpty());
    desired.fields = {{"MaxTRES", "gres/gpu=2"}, {"MaxSubmitPU", "10"}, {"MaxJobsPU", "1"}};
    // For setting, 22.05 does not know MaxSubmitPU and would drop the whole command.
    EXPECT_THAT(qos_arguments(list[0], desired),
                ElementsAre("Flags-=DenyOnLimit", "MaxTRESPerJob=gres/gpu=2,node=-1",
                            "MaxJobsPerUser=1", "MaxSubmitJobsPerUser=10"));
    EXPECT_THAT(qos_arguments(desired, list[0]),
                ElementsAre("Flags+=DenyOnLimit", "MaxTRESPerJob=gres/gpu=4,node=1",
                            "MaxJobsPerUser=-1", "MaxSubmitJobsPerUser=20"));
}

TEST(SacctmgrText, EveryLimitOfAQosIsComparedAndCanBeTakenAway)
{
    const auto shown = [](const std::string& name, const std::string& value) {
        std::string row = "q";
        for (const QosField& field : qos_fields()) {
            row += "|" + (field.name == name ? value : std::string(field.unset));
        }
        return qos_in(row + "\n").at(0);
    };
    // Times become minutes: in Slurm's notation they could not be compared as limits.
    EXPECT_EQ(shown("MaxWall", "1-00:03:00").fields.at("MaxWall"), "1443");
    EXPECT_EQ(shown("GrpWall", "00:03:00").fields.at("GrpWall"), "3");
    const SlurmObject plain{Kind::qos, "q", {}, 0};
    EXPECT_THAT(qos_arguments(shown("MaxWall", "00:03:00"), plain), ElementsAre("MaxWall=-1"));
    EXPECT_THAT(qos_arguments(shown("MaxJobsAccruePU", "3"), plain),
                ElementsAre("MaxJobsAccruePerUser=-1"));
    // 22.05 ignores -1 here.
    EXPECT_THAT(qos_arguments(shown("MaxTRESRunMinsPA", "gres/gpu=60"), plain),
                ElementsAre("MaxTRESRunMinsPA=gres/gpu=18446744073709551614"));
    EXPECT_THAT(qos_arguments(shown("MaxTRESRunMinsPU", "gres/gpu=60"), plain),
                ElementsAre("MaxTRESRunMinsPU=gres/gpu=-1"));
}

TEST(SacctmgrText, LimitsOfGpusAreTakenAwayOneByOne)
{
    const std::vector<AssociationLimit> actual{{"lab", "GrpTRES=cpu=8,gres/gpu=2,gres/gpu:k80=1"},
                                               {"ada@lab", "GrpTRES=gres/gpu=1"},
                                               {"lab", "MaxJobs=7"}};
    EXPECT_THAT(gpu_limit_arguments(actual, {Kind::limit, "lab", {}, 0}),
                ElementsAre("GrpTRES=gres/gpu=-1", "GrpTRES=gres/gpu:k80=-1"));
    EXPECT_THAT(gpu_limit_arguments({}, {Kind::limit, "lab", {{"MaxTRES", "gres/gpu=2"}}, 0}),
                ElementsAre("MaxTRES=gres/gpu=2"));
}

TEST(SacctmgrText, WhoHasAQosWhichShareAndWhichLimits)
{
    const std::string none(16, '|');
    const auto associations = associations_in(
        "root|||1|gpuq_a,normal" + none + "\n" + //
        "lab|||20|+gpuq_b|gres/gpu=2" + none.substr(1) + "\n" + "visu|||1|-gpuq_a" + none +
        "\n" +                                                                               //
        "lab|ada||1|+gpuq_b" + none.substr(6) + "7||||||\n" + "visu|ada||5|" + none + "\n" + //
        "lab|ben||1|+gpuq_b" + none + "\n" + "lab|cleo|short|1|+gpuq_b" + none + "\n");
    const auto accesses = accesses_in(associations);
    ASSERT_EQ(accesses.size(), 3U);
    EXPECT_EQ(accesses[0].name, "gpuq_a");
    EXPECT_EQ(accesses[0].fields, (std::map<std::string, std::string>{
                                      {"accounts", "root"}, {"users", ""}, {"without", "visu"}}));
    EXPECT_EQ(accesses[1].fields,
              (std::map<std::string, std::string>{{"accounts", "lab"}, {"users", "ada@lab,ben"}}));
    std::map<std::string, std::string> shares;
    for (const SlurmObject& share : shares_in(associations)) {
        shares[share.name] = share.fields.at("fairshare");
    }
    EXPECT_EQ(
        shares,
        (std::map<std::string, std::string>{
            {"lab", "20"}, {"visu", "1"}, {"ada@lab", "1"}, {"ada@visu", "5"}, {"ben@lab", "1"}}));
    EXPECT_THAT(limits_in(associations), ElementsAre(AssociationLimit{"lab", "GrpTRES=gres/gpu=2"},
                                                     AssociationLimit{"ada@lab", "MaxJobs=7"}));
}

TEST(SacctmgrText, OtherFieldsOfAssociationsAreTexts)
{
    const std::string none(12, '|');
    EXPECT_THAT(other_associations_in("lab|||20|+a" + none + "|a||7|\n" + "lab|ada|short|2|+b|" +
                                      "cpu=4" + none.substr(1) + "||||\n" + "a|b\nc\n"),
                ElementsAre("account lab: DefaultQOS=a", "account lab: GrpJobsAccrue=7",
                            "association ada@lab in partition short: Share=2",
                            "association ada@lab in partition short: QOS=+b",
                            "association ada@lab in partition short: GrpTRES=cpu=4",
                            "association a|b", "association c"));
}

} // namespace
} // namespace gpuq::slurm
