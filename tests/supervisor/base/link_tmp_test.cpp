// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/link_tmp.h"

#include "posix/tree.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

namespace fs = std::filesystem;

class LinkTmpTest : public testing::Test {
protected:
    LinkTmpTest()
    {
        std::string pattern = testing::TempDir() + "gpuq-link-tmp-XXXXXX";
        m_place = mkdtemp(pattern.data());
        if (const char* const before = std::getenv("TMPDIR")) {
            m_before = before;
        }
        ::setenv("TMPDIR", m_place.c_str(), 1);
    }
    ~LinkTmpTest() override
    {
        m_before ? ::setenv("TMPDIR", m_before->c_str(), 1) : ::unsetenv("TMPDIR");
        fs::remove_all(m_place);
    }

    std::size_t count() const
    {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(m_place), fs::directory_iterator()));
    }

    std::string m_place;
    std::optional<std::string> m_before;
};

TEST_F(LinkTmpTest, IsNotWhereOthersCouldReplaceIt)
{
    const auto place_with = [&](mode_t mode) {
        ::chmod(m_place.c_str(), mode);
        const auto tmp = LinkTmp::make();
        EXPECT_TRUE(tmp);
        const std::string place = fs::path(tmp->path()).parent_path();
        tmp->remove(remove_tree_at);
        return place;
    };
    EXPECT_EQ(place_with(0777), "/tmp");
    EXPECT_EQ(place_with(0770), "/tmp");
    EXPECT_EQ(place_with(01777), m_place);
    EXPECT_EQ(place_with(0700), m_place);
}

TEST_F(LinkTmpTest, IsOfItsUserAloneAndGoesWithAllThatIsInIt)
{
    const auto tmp = LinkTmp::make();
    ASSERT_TRUE(tmp);
    EXPECT_EQ(fs::path(tmp->path()).parent_path(), m_place);
    EXPECT_TRUE(is_link_tmp(tmp->path()));
    struct stat status = {};
    ASSERT_EQ(::stat(tmp->path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700U);
    fs::create_directories(tmp->path() + "/a/b");
    std::ofstream(tmp->path() + "/a/b/file") << "x";
    fs::permissions(tmp->path() + "/a", fs::perms::none);
    tmp->remove(remove_tree_at);
    EXPECT_EQ(count(), 0U);
}

TEST_F(LinkTmpTest, FollowsNoLink)
{
    const std::string outside = m_place + "/outside";
    fs::create_directories(outside);
    std::ofstream(outside + "/precious") << "x";
    const auto tmp = LinkTmp::make();
    ASSERT_TRUE(tmp);
    fs::create_symlink(outside, tmp->path() + "/link");
    fs::create_symlink(outside + "/precious", tmp->path() + "/file");
    tmp->remove(remove_tree_at);
    EXPECT_TRUE(fs::exists(outside + "/precious"));
    EXPECT_FALSE(fs::exists(tmp->path()));
}

TEST_F(LinkTmpTest, SweepsWhatAKilledProcessHasLeftAndNothingElse)
{
    int names[2];
    ASSERT_EQ(::pipe(names), 0);
    const pid_t killed = ::fork();
    if (killed == 0) {
        const auto tmp = LinkTmp::make();
        std::ofstream(tmp->path() + "/file") << "x";
        (void)!::write(names[1], tmp->path().data(), tmp->path().size());
        ::raise(SIGKILL);
    }
    ::waitpid(killed, nullptr, 0);
    char name[4096] = "";
    ASSERT_GT(::read(names[0], name, sizeof name - 1), 0);
    ASSERT_TRUE(fs::exists(std::string(name) + "/file"));
    const auto in_use = LinkTmp::make();
    const auto ending = LinkTmp::make();
    ASSERT_TRUE(in_use && ending);
    fs::create_directories(m_place + "/gpuq-tmp-of-somebody");
    ending->remove(remove_tree_at);
    EXPECT_FALSE(fs::exists(name));
    EXPECT_TRUE(fs::exists(in_use->path()));
    EXPECT_TRUE(fs::exists(m_place + "/gpuq-tmp-of-somebody"));
    in_use->remove(remove_tree_at);
}

TEST_F(LinkTmpTest, LiesInTmpWhereTheNodeHasNoUsablePlace)
{
    ::setenv("TMPDIR", (m_place + "/nosuch").c_str(), 1);
    const auto tmp = LinkTmp::make();
    ASSERT_TRUE(tmp);
    EXPECT_EQ(fs::path(tmp->path()).parent_path(), "/tmp");
    tmp->remove(remove_tree_at);
    EXPECT_FALSE(fs::exists(tmp->path()));
}

} // namespace
} // namespace gpuq::supervisor
