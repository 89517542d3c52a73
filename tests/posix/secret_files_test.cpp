// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/secret_files.h"

#include "posix/host.h"
#include "posix/login_tickets.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq {
namespace {

namespace fs = std::filesystem;

/// A directory of the test's own.
class Secrets : public testing::Test {
protected:
    Secrets()
    {
        char name[] = "/tmp/gpuq-secrets-XXXXXX";
        m_top = ::mkdtemp(name);
        m_directory = m_top + "/a/b";
    }
    ~Secrets() override { fs::remove_all(m_top); }
    static unsigned mode(const std::string& path)
    {
        struct stat facts {};
        return ::stat(path.c_str(), &facts) == 0 ? facts.st_mode & 0777U : 0;
    }
    static void put(const std::string& path, const std::string& text)
    {
        std::ofstream(path) << text;
        fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    }

    std::string m_top, m_directory;
    PosixSecretFiles m_files;
};

TEST_F(Secrets, AreTheOwnersAlone)
{
    ::umask(0);
    ASSERT_TRUE(m_files.make_directory(m_directory));
    ASSERT_TRUE(m_files.write(m_directory, "ticket", std::string("\0x", 2)));
    ::umask(022);
    EXPECT_EQ(mode(m_directory), 0700U);
    EXPECT_EQ(mode(m_directory + "/ticket"), 0600U);
    EXPECT_EQ(*m_files.read(m_directory, "ticket"), std::string("\0x", 2));
    ASSERT_TRUE(m_files.write(m_directory, "ticket", "new"));
    EXPECT_EQ(*m_files.read(m_directory, "ticket"), "new");
    EXPECT_EQ(std::distance(fs::directory_iterator(m_directory), {}),
              1); // no temporary file remains
}

TEST_F(Secrets, AreNotReadWhereOthersCouldBe)
{
    ASSERT_TRUE(m_files.make_directory(m_directory));
    ASSERT_TRUE(m_files.write(m_directory, "ticket", "x"));
    ::chmod((m_directory + "/ticket").c_str(), 0640);
    EXPECT_EQ(m_files.read(m_directory, "ticket").error().kind, Error::Kind::denied);
    ::chmod(m_directory.c_str(), 0750);
    EXPECT_EQ(m_files.write(m_directory, "ticket", "y").error().kind, Error::Kind::denied);
}

TEST_F(Secrets, OfTheirOwnersAreReadInAnyFolder)
{
    put(m_top + "/keytab", "key");
    ::chmod(m_top.c_str(), 0755);
    ::chmod((m_top + "/keytab").c_str(), 0600);
    EXPECT_EQ(*m_files.read_own(m_top + "/keytab"), "key");
    ::chmod((m_top + "/keytab").c_str(), 0604);
    EXPECT_EQ(m_files.read_own(m_top + "/keytab").error().kind, Error::Kind::denied);
    ::chmod((m_top + "/keytab").c_str(), 0600);
    ::chmod(m_top.c_str(), 0777);
    EXPECT_EQ(m_files.read_own(m_top + "/keytab").error().kind, Error::Kind::denied);
    ::chmod(m_top.c_str(), 0755);
    EXPECT_EQ(m_files.read_own(m_top).error().kind, Error::Kind::usage);
    EXPECT_EQ(m_files.read_own(m_top + "/none").error().kind, Error::Kind::missing);
}

/// Like the temporary directories of links.
TEST_F(Secrets, MayLieInADirectoryRightBelowTmp)
{
    std::string directory = "/tmp/gpuq-secrets-XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    EXPECT_TRUE(m_files.write(directory, "key", "secret"));
    EXPECT_EQ(m_files.read(directory, "key").value(), "secret");
    EXPECT_TRUE(m_files.remove_directory(directory));
}

TEST_F(Secrets, TellWhenTheyWereWritten)
{
    ASSERT_TRUE(m_files.make_directory(m_directory));
    EXPECT_EQ(m_files.written_at(m_directory, "ticket").error().kind, Error::Kind::missing);
    ASSERT_TRUE(m_files.write(m_directory, "ticket", "x"));
    const timespec times[2] = {{1000, 0}, {1000, 0}};
    ::utimensat(AT_FDCWD, (m_directory + "/ticket").c_str(), times, 0);
    EXPECT_EQ(*m_files.written_at(m_directory, "ticket"), Time(std::chrono::seconds(1000)));
}

TEST_F(Secrets, FollowNoLinks)
{
    ASSERT_TRUE(m_files.make_directory(m_directory));
    put(m_top + "/elsewhere", "others'");
    fs::create_symlink(m_top + "/elsewhere", m_directory + "/ticket");
    EXPECT_EQ(m_files.read(m_directory, "ticket").error().kind, Error::Kind::denied);
    ASSERT_TRUE(m_files.write(m_directory, "ticket", "ours")); // replaces the symbolic link
    std::ifstream untouched(m_top + "/elsewhere");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(untouched), {}), "others'");
    fs::create_directory_symlink(m_directory, m_top + "/way");
    EXPECT_FALSE(m_files.read(m_top + "/way", "ticket"));
}

TEST_F(Secrets, DoNotComeBackToAFolderThatIsGone)
{
    ASSERT_TRUE(m_files.make_directory(m_directory));
    ASSERT_TRUE(m_files.write(m_directory, "one", "x"));
    ASSERT_TRUE(m_files.remove_directory(m_directory));
    EXPECT_FALSE(fs::exists(m_directory));
    EXPECT_EQ(m_files.write(m_directory, "two", "x").error().kind, Error::Kind::missing);
    EXPECT_TRUE(m_files.remove_directory(m_directory));
    EXPECT_TRUE(m_files.remove(m_directory, "one"));
}

TEST_F(Secrets, TicketsOfALoginAreFound)
{
    std::map<std::string, std::string> variables;
    PosixHost host;
    PosixLoginTickets login(
        [&](const std::string& name) {
            return variables.count(name) != 0 ? std::optional(variables[name]) : std::nullopt;
        },
        host);
    put(m_top + "/file", "a");
    fs::create_directories(m_top + "/dir");
    put(m_top + "/dir/tkt", "b");
    put(m_top + "/dir/tktX", "c");
    const auto at = [&](const std::string& name) {
        variables["KRB5CCNAME"] = name;
        return login.cache();
    };
    EXPECT_EQ(*at("FILE:" + m_top + "/file"), "a");
    EXPECT_EQ(*at(m_top + "/file"), "a");
    EXPECT_EQ(*at("DIR:" + m_top + "/dir"), "b");
    put(m_top + "/dir/primary", "tktX\n");
    EXPECT_EQ(*at("DIR:" + m_top + "/dir"), "c");
    EXPECT_EQ(*at("DIR::" + m_top + "/dir/tkt"), "b");
    put(m_top + "/dir/primary", "../file\n");
    EXPECT_FALSE(at("DIR:" + m_top + "/dir"));
    EXPECT_EQ(at("FILE:/nowhere/none").error().kind, Error::Kind::missing);
    EXPECT_EQ(at("MEMORY:x").error().kind, Error::Kind::missing);

    variables = {{"KRB5_CONFIG", m_top + "/krb5.conf"}};
    put(m_top + "/krb5.conf", "[libdefaults]\n default_ccache_name = FILE:" + m_top + "/file\n");
    EXPECT_EQ(*login.cache(), "a");
}

TEST(DefaultCache, IsFoundInIncludedFilesToo)
{
    const auto file = [](const std::string& path) -> std::optional<std::string> {
        return path == "/d/kcm" ? std::optional<std::string>("[libdefaults]\n"
                                                             "    default_ccache_name = KCM:\n")
                                : std::nullopt;
    };
    const auto list = [](const std::string& directory) {
        return directory == "/d" ? std::vector<std::string>{"/d/kcm"} : std::vector<std::string>{};
    };
    EXPECT_EQ(default_cache_in("includedir /d\n[libdefaults]\n x = y\n", file, list), "KCM:");
    EXPECT_EQ(default_cache_in("include /d/kcm\n", file, list), "KCM:");
    EXPECT_EQ(default_cache_in("[realms]\n default_ccache_name = FILE:/x\n", file, list), "");
    EXPECT_EQ(default_cache_in("[libdefaults]\n#default_ccache_name = FILE:/x\n", file, list), "");
}

} // namespace
} // namespace gpuq
