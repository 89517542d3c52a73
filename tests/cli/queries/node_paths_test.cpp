// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/node_paths.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <unistd.h>

namespace gpuq::cli {
namespace {

namespace fs = std::filesystem;

class NodePaths : public testing::Test {
protected:
    NodePaths()
    {
        std::string pattern = testing::TempDir() + "gpuq-node-paths-XXXXXX";
        m_top = mkdtemp(pattern.data());
        fs::create_directories(m_top + "/home/work");
        fs::create_directories(m_top + "/other");
    }
    ~NodePaths() override { fs::remove_all(m_top); }

    bool same(const std::string& path) const
    {
        return is_same_on_nodes(path.starts_with('/') ? path : m_top + "/" + path,
                                {"", m_top + "/home"});
    }

    std::string m_top;
};

TEST_F(NodePaths, AreThoseBelowASharedDirectory)
{
    EXPECT_TRUE(same("home/work/nosuch"));
    EXPECT_TRUE(same("home/work/no/such/path"));
    EXPECT_TRUE(same("home/work"));
    EXPECT_TRUE(same("home"));
    EXPECT_FALSE(same("homes"));
    EXPECT_FALSE(same("other/nosuch"));
    EXPECT_FALSE(same("home/../other/nosuch"));
    EXPECT_FALSE(same("/usr/bin/nosuch"));
    EXPECT_FALSE(is_same_on_nodes("/usr/bin/nosuch", {"/usr/bin", "/"}));
    EXPECT_FALSE(is_same_on_nodes("/nosuch", {"/"}));
}

TEST_F(NodePaths, FollowLinks)
{
    fs::create_symlink(m_top + "/other", m_top + "/home/away");
    fs::create_symlink(m_top + "/home/work", m_top + "/other/back");
    fs::create_symlink(m_top + "/gone", m_top + "/home/dangling");
    EXPECT_FALSE(same("home/away/nosuch"));
    EXPECT_TRUE(same("other/back/nosuch"));
    EXPECT_FALSE(same("home/dangling"));
    EXPECT_FALSE(same("home/dangling/nosuch"));
    // The nodes lack its target as well.
    fs::create_symlink("nosuch/program", m_top + "/home/work/to_nothing");
    fs::create_symlink("../home/work/to_nothing", m_top + "/other/to_link");
    EXPECT_TRUE(same("home/work/to_nothing"));
    EXPECT_TRUE(same("other/to_link"));
    fs::create_symlink("loop", m_top + "/home/loop");
    EXPECT_FALSE(same("home/loop"));
}

TEST_F(NodePaths, AreUnknownWherePermissionsHideThem)
{
    if (::geteuid() == 0) {
        GTEST_SKIP() << "root sees everything";
    }
    fs::create_directories(m_top + "/home/closed");
    fs::permissions(m_top + "/home/closed", fs::perms::none);
    EXPECT_FALSE(same("home/closed/nosuch"));
    fs::permissions(m_top + "/home/closed", fs::perms::owner_all);
}

} // namespace
} // namespace gpuq::cli
