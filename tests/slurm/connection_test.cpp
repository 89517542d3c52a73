// SPDX-License-Identifier: GPL-2.0-or-later
#include "ports/cluster.h"
#include "slurm/cluster.h"
#include "slurm/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gpuq {
namespace {

using ::testing::HasSubstr;

class Configuration : public ::testing::Test {
protected:
    ~Configuration() override
    {
        ::unsetenv("SLURM_CONF");
        std::filesystem::remove_all(m_directory);
    }

    std::string write(const std::string& name, const std::string& text)
    {
        std::ofstream(m_directory + name) << text;
        return m_directory + name;
    }

    static std::string make_directory()
    {
        std::string name = "/tmp/gpuq-slurm-XXXXXX";
        return std::string(::mkdtemp(name.data())) + "/";
    }

    std::string m_directory = make_directory();
};

TEST_F(Configuration, IsTheOneNamedThenThatOfTheEnvironment)
{
    const std::string one = write("one.conf", "");
    const std::string two = write("two.conf", "");
    ::setenv("SLURM_CONF", one.c_str(), 1);
    EXPECT_EQ(slurm_configuration({}).value(), one);
    EXPECT_EQ(slurm_configuration(two).value(), two);
}

TEST_F(Configuration, ThatIsNotThereIsSaidBeforeSlurmLooksForAMinute)
{
    ::setenv("SLURM_CONF", (m_directory + "none").c_str(), 1);
    const auto cluster = SlurmCluster::open();
    ASSERT_FALSE(cluster);
    EXPECT_EQ(cluster.error().kind, Error::Kind::usage);
    EXPECT_THAT(cluster.error().text, HasSubstr(m_directory + "none"));
    EXPECT_THAT(cluster.error().text, HasSubstr("SLURM_CONF"));
}

TEST_F(Configuration, AnIncludedFileThatIsNotThereIsSaidToo)
{
    const auto conf = [&](const std::string& text) { return write("slurm.conf", text); };
    std::filesystem::create_directory(m_directory + "gpuq");
    write("gpuq/policy.conf", "");
    for (const char* fine : {"Include gpuq/policy.conf\n", "# Include gone.conf\n", "IncludeX=1\n",
                             "Include %c.conf\n", "include\tgpuq/policy.conf # gone.conf\n"}) {
        EXPECT_TRUE(slurm::check_includes(conf(fine))) << fine;
    }
    EXPECT_TRUE(slurm::check_includes(conf("Include " + m_directory + "gpuq/policy.conf\n")));
    const auto gone = SlurmCluster::open(conf("ClusterName=lab\n  INCLUDE gpuq/gone.conf # x\n"));
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().kind, Error::Kind::usage);
    EXPECT_THAT(gone.error().text, HasSubstr(m_directory + "gpuq/gone.conf, which does not exist"));
}

TEST_F(Configuration, GivesTheNameOfTheClusterWithoutAskingAnybody)
{
    const std::string good = write(
        "slurm.conf", "ClusterName=lab\nSlurmctldHost=nobody(127.0.0.1)\nAuthType=auth/munge\n");
    const auto open_and_exit = [&] {
        const auto cluster = SlurmCluster::open(good);
        const bool named = cluster && (*cluster)->name().value() == "lab";
        const auto other = SlurmCluster::open(write("other.conf", ""));
        std::exit(named && !other ? 0 : 1);
    };
    EXPECT_EXIT(open_and_exit(), ::testing::ExitedWithCode(0), "");
}

TEST_F(Configuration, ThatIsBrokenEndsTheProcessWithSlurmsWords)
{
    const std::string bad = write("bad.conf", "ClusterName=lab\nNoSuchKey=1\n");
    EXPECT_EXIT((void)(*SlurmCluster::open(bad))->partitions(), ::testing::ExitedWithCode(2),
                "gpuq: Slurm's configuration can't be used: .*NoSuchKey");
}

std::optional<std::string> name_in(const std::string& text)
{
    std::istringstream conf(text);
    return slurm::cluster_name_in(conf);
}

TEST(ClusterName, IsReadFromTheTextWhereItIsPlain)
{
    EXPECT_EQ(name_in("# ours\nClusterName=lab\n"), "lab");
    EXPECT_EQ(name_in("clustername=lab-2 SlurmctldHost=a\r\n"), "lab-2");
    EXPECT_EQ(name_in("CLUSTERNAME=lab#comment"), "lab");
}

TEST(ClusterName, IsLeftToLibslurmWhereItIsNot)
{
    for (const std::string text :
         {"", "# ClusterName=lab", "ClusterName = lab", "ClusterName=\"lab\"", "ClusterName=Lab",
          "ClusterName=lab\\\n", "SlurmctldHost=a ClusterName=lab",
          "ClusterName=lab\n  include more.conf\n", "ClusterName=lab\nInclude more.conf\n",
          "ClusterName=lab\nClusterName=other\n"}) {
        EXPECT_EQ(name_in(text), std::nullopt) << text;
    }
}

TEST_F(Configuration, GivesTheNameThatLibslurmMakesOfItsText)
{
    const std::string conf = write(
        "slurm.conf", "SlurmctldHost=nobody(127.0.0.1)\nAuthType=auth/munge\nClusterName=Lab_2\n");
    const auto open_and_exit = [&] {
        const auto cluster = SlurmCluster::open(conf);
        std::exit(cluster && (*cluster)->name().value() == "lab_2" ? 0 : 1);
    };
    EXPECT_EXIT(open_and_exit(), ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace gpuq
