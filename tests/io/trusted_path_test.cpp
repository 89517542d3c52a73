// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/trusted_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t k_another_user = 1;

class TrustedPath : public testing::Test {
protected:
    TrustedPath()
    {
        std::string name = "/tmp/gpuq-trusted-XXXXXX";
        m_root = ::mkdtemp(name.data());
        fs::create_directories(m_root / "a/b");
        std::ofstream(m_root / "a/b/file") << "text";
        mode("a", 0755);
        mode("a/b", 0755);
        mode("a/b/file", 0644);
    }
    ~TrustedPath() override { fs::remove_all(m_root); }

    std::string at(const std::string& name) const { return (m_root / name).string(); }
    void mode(const std::string& name, mode_t mode) const
    {
        ASSERT_EQ(::chmod(at(name).c_str(), mode), 0);
    }
    /// The error message; empty if the file is trusted.
    std::string wrong(const std::string& name) const
    {
        const auto file = open_trusted_file(at(name));
        return file ? "" : file.error().text;
    }

    fs::path m_root;
};

TEST_F(TrustedPath, OfOnesOwnIsOpened)
{
    const auto file = open_trusted_file(at("a/b/file"));
    ASSERT_TRUE(file) << file.error().text;
    char text[8] = {};
    EXPECT_EQ(::read(file->get(), text, sizeof text), 4);
    EXPECT_STREQ(text, "text");
    EXPECT_TRUE(open_trusted_directory(at("a/b")));
    EXPECT_TRUE(open_trusted_directory("/"));
    EXPECT_EQ(wrong("a/./b//../b/file"), "");
    EXPECT_EQ(open_trusted_file(at("a/b")).error().kind, Error::Kind::usage);
    EXPECT_FALSE(open_trusted_directory(at("a/b/file")));
}

TEST_F(TrustedPath, NamesTheFileThatOthersMayWrite)
{
    for (const mode_t bits : {0666U, 0664U, 0646U}) {
        mode("a/b/file", bits);
        const auto file = open_trusted_file(at("a/b/file"));
        ASSERT_FALSE(file);
        EXPECT_EQ(file.error().kind, Error::Kind::denied);
        EXPECT_EQ(file.error().text,
                  fmt::format("others may write to {0} (mode {1:04o}): chmod go-w {0}",
                              at("a/b/file"), bits));
    }
}

TEST_F(TrustedPath, NamesTheDirectoryOnTheWay)
{
    mode("a", 0777);
    EXPECT_EQ(wrong("a/b/file"),
              fmt::format("others may write to {0} on the way to {1} (mode 0777): "
                          "chmod go-w {0}",
                          at("a"), at("a/b/file")));
    mode("a", 0775);
    EXPECT_THAT(wrong("a/b/file"), HasSubstr("(mode 0775)"));
    mode("a", 01777); // like /tmp
    EXPECT_EQ(wrong("a/b/file"), "");
    mode("a", 0755);
    mode("a/b", 01777);
    EXPECT_THAT(open_trusted_directory(at("a/b")).error().text, HasSubstr("(mode 1777)"));
    EXPECT_TRUE(open_trusted_parent(at("a/b/file")));
    mode("a/b", 0777);
    EXPECT_THAT(open_trusted_parent(at("a/b/file")).error().text, HasSubstr("(mode 0777)"));
}

TEST_F(TrustedPath, WhatIsMissingIsMissingWhereverItWouldBe)
{
    mode("a/b", 0777);
    EXPECT_EQ(open_trusted_file(at("a/b/other")).error().kind, Error::Kind::missing);
    EXPECT_EQ(open_trusted_file(at("a/b/file/x")).error().kind, Error::Kind::missing);
}

TEST_F(TrustedPath, FollowsLinksAndLooksWhereTheyLead)
{
    fs::create_symlink("b/file", m_root / "a/near");
    fs::create_symlink(at("a"), m_root / "far");
    fs::create_symlink("loop", m_root / "loop");
    EXPECT_EQ(wrong("a/near"), "");
    EXPECT_EQ(wrong("far/near"), "");
    EXPECT_TRUE(open_trusted_directory(at("far")));
    EXPECT_FALSE(open_trusted_file(at("loop")));
    mode("a/b", 0777);
    EXPECT_THAT(wrong("far/near"), HasSubstr("others may write to " + at("a/b")));
}

TEST_F(TrustedPath, AFifoDoesNotHoldItUp)
{
    ASSERT_EQ(::mkfifo(at("a/fifo").c_str(), 0600), 0);
    EXPECT_THAT(wrong("a/fifo"), HasSubstr("is not a file"));
}

TEST_F(TrustedPath, NamesTheUserWhoCouldChangeIt)
{
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can give files away";
    }
    const auto give = [&](const std::string& name) {
        ASSERT_EQ(::lchown(at(name).c_str(), k_another_user, k_another_user), 0);
    };
    fs::create_symlink("a/b/file", m_root / "link");
    give("link");
    EXPECT_THAT(wrong("link"), HasSubstr("belongs to user daemon (1)"));
    give("a/b/file");
    EXPECT_THAT(wrong("a/b/file"), HasSubstr(at("a/b/file") + " belongs to user daemon (1)"));
    EXPECT_TRUE(open_trusted_file(at("a/b/file"), k_another_user));
    ASSERT_EQ(::chown(at("a/b/file").c_str(), 0, 0), 0);
    give("a");
    EXPECT_THAT(wrong("a/b/file"), HasSubstr(at("a") + " on the way to"));
}

} // namespace
} // namespace gpuq
