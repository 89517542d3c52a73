// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/site_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::embedded {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string k_conf = "# a site\n"
                           "ClusterName=site\n"
                           "SlurmctldHost=head(10.0.0.1)   # not here\n"
                           "StateSaveLocation=/var/spool/slurmctld\n"
                           "GresTypes=gpu,nvme\n"
                           "JobSubmitPlugins=throttle,lua\n"
                           "PriorityWeightAge=500\n"
                           "NodeName=DEFAULT CPUs=64 RealMemory=1000 State=UNKNOWN\n"
                           "NodeName=n[1-2] Gres=gpu:k80:2,nvme:1,gpu:4(S:0) Feature=\"a,b\" \\\n"
                           "   NodeAddr=10.0.0.[2-3] Weight=5\n"
                           "NodeName=c1 Gres=gpu:t4\n"
                           "NodeSet=fast Feature=a\n"
                           "PartitionName=one Nodes=fast QOS=limits AllowQos=normal,long\n"
                           "PartitionName=two Nodes=ALL AllowQos=ALL Default=YES\n";

TEST(SiteConf, KeepsPartitionsNodesAndSettingsAndNoMachines)
{
    const auto conf = site_conf_in(k_conf, "slurm.conf");
    ASSERT_TRUE(conf) << conf.error().text;
    EXPECT_THAT(conf->lines,
                ElementsAre("JobSubmitPlugins=throttle,lua", "PriorityWeightAge=500",
                            "NodeSet=fast Feature=a",
                            "PartitionName=one Nodes=fast QOS=limits AllowQos=normal,long",
                            "PartitionName=two Nodes=ALL AllowQos=ALL Default=YES"));
    EXPECT_THAT(conf->qos, ElementsAre("limits", "long", "normal"));
    EXPECT_TRUE(conf->has_script);
    const std::vector<GpuDevice> six{{"k80", ""}, {"k80", ""}, {"", ""},
                                     {"", ""},    {"", ""},    {"", ""}};
    EXPECT_EQ(conf->nodes, (std::vector<NamedNode>{
                               {"n1", six, 1, "CPUs=64 Feature=\"a,b\" RealMemory=1000 Weight=5"},
                               {"n2", six, 1, "CPUs=64 Feature=\"a,b\" RealMemory=1000 Weight=5"},
                               {"c1", {{"t4", ""}}, 1, "CPUs=64 RealMemory=1000"}}));
    EXPECT_EQ(most_gpus(*conf), 6);
}

TEST(SiteConf, BecomesTheClustersOwn)
{
    const auto conf = site_conf_in(k_conf, "slurm.conf");
    std::vector<GpuDevice> stand_ins;
    for (int i = 0; i < 6; ++i) {
        stand_ins.push_back({"", "/dev/tty" + std::to_string(i)});
    }
    ClusterSpec spec;
    use_conf(spec, *conf, stand_ins);
    EXPECT_EQ(spec.nodes, 3);
    EXPECT_EQ(spec.named[1].gpus[5], (GpuDevice{"", "/dev/tty5"}));
    EXPECT_EQ(spec.named[2].gpus, (std::vector<GpuDevice>{{"t4", "/dev/tty0"}}));
    EXPECT_EQ(spec.conf_lines, conf->lines);
    EXPECT_EQ(spec.conf_qos, conf->qos);
}

TEST(SiteConf, NodesWithoutASizeGetOne)
{
    const auto conf = site_conf_in("NodeName=a\nPartitionName=p Nodes=a\n", "f");
    ASSERT_TRUE(conf) << conf.error().text;
    EXPECT_THAT(conf->nodes[0].attributes, HasSubstr("CPUs="));
    EXPECT_THAT(conf->nodes[0].attributes, HasSubstr("RealMemory="));
}

TEST(SiteConf, RefusesWhatItCannotReproduce)
{
    const std::string tail = "NodeName=a\nPartitionName=p Nodes=a\n";
    for (const auto& [text, why] : {std::pair<std::string, const char*>{"", "no NodeName"},
                                    {"NodeName=a\n", "no PartitionName"},
                                    {"include nodes.conf\n" + tail, "include"},
                                    {"nonsense\n" + tail, "'nonsense' is not a line"},
                                    {"NodeName=n[1-x]\n" + tail, "f: "},
                                    {"NodeName=b Gres=gpu:k80:many\n" + tail, "of node b"},
                                    {"NodeName=b Gres=gpu:99999999999999\n" + tail, "of node b"},
                                    {"NodeName=n[1-65]\n" + tail, "66 nodes"}}) {
        const auto conf = site_conf_in(text, "f");
        ASSERT_FALSE(conf) << text;
        EXPECT_EQ(conf.error().kind, Error::Kind::usage);
        EXPECT_THAT(conf.error().text, HasSubstr(why)) << text;
    }
}

} // namespace
} // namespace gpuq::embedded
