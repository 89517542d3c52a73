// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFileTest : public testing::Test {
protected:
    fs::path m_dir;

    void SetUp() override
    {
        std::string name = fs::temp_directory_path() / "gpuq-output-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        m_dir = name;
    }
    void TearDown() override { fs::remove_all(m_dir); }

    static Result<void> write(const fs::path& path, const std::string& text)
    {
        TRY_ASSIGN(const OutputFile file, OutputFile::at(path));
        return file.write(text);
    }
    static std::string content(const fs::path& path)
    {
        std::ifstream stream(path);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    std::size_t files() const
    {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(m_dir), fs::directory_iterator()));
    }
};

TEST_F(OutputFileTest, MakesAFileAndReplacesIt)
{
    ASSERT_TRUE(write(m_dir / "a.html", "one"));
    ASSERT_TRUE(write(m_dir / "." / "a.html", "two"));
    EXPECT_EQ(content(m_dir / "a.html"), "two");
    EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFileTest, SaysWhereItCanNotWrite)
{
    const auto missing = write(m_dir / "no" / "a.html", "x");
    EXPECT_EQ(missing.error().kind, Error::Kind::missing);
    EXPECT_THAT(missing.error().text, HasSubstr("no/a.html: No such file or directory"));
    EXPECT_THAT(write(m_dir, "x").error().text, HasSubstr("it is a directory, not a file"));
    EXPECT_THAT(write("/dev/null", "x").error().text, HasSubstr("a device or a pipe"));
    EXPECT_FALSE(write("", "x"));
    EXPECT_FALSE(write(m_dir / "..", "x"));
    if (::geteuid() != 0) {
        fs::permissions(m_dir, fs::perms::owner_read | fs::perms::owner_exec);
        EXPECT_EQ(write(m_dir / "a.html", "x").error().kind, Error::Kind::denied);
        fs::permissions(m_dir, fs::perms::owner_all);
    }
}

TEST_F(OutputFileTest, FollowsLinksOnlyWhereNobodyElseCanHaveMadeThem)
{
    fs::create_directory(m_dir / "real");
    fs::create_symlink("real", m_dir / "folder");
    fs::create_symlink("folder/../real/a.html", m_dir / "link.html");
    ASSERT_TRUE(write(m_dir / "link.html", "x"));
    EXPECT_TRUE(fs::is_symlink(m_dir / "link.html"));
    EXPECT_EQ(content(m_dir / "real" / "a.html"), "x");

    ASSERT_EQ(::chmod(m_dir.c_str(), 01777), 0);
    for (const char* path : {"link.html", "folder/a.html"}) {
        const auto refused = write(m_dir / path, "y");
        EXPECT_EQ(refused.error().kind, Error::Kind::denied);
        EXPECT_THAT(refused.error().text, HasSubstr("a symbolic link in a directory writable"));
    }
    EXPECT_EQ(content(m_dir / "real" / "a.html"), "x");
    ASSERT_TRUE(write(m_dir / "b.html", "z"));
}

TEST_F(OutputFileTest, ALinkThatComesUpLaterIsReplacedNotFollowed)
{
    const auto file = OutputFile::at(m_dir / "a.html");
    ASSERT_TRUE(file);
    fs::create_symlink("elsewhere", m_dir / "a.html");
    ASSERT_TRUE(file->write("x"));
    EXPECT_FALSE(fs::exists(m_dir / "elsewhere"));
    EXPECT_FALSE(fs::is_symlink(m_dir / "a.html"));
}

TEST_F(OutputFileTest, LinksInACircleEnd)
{
    fs::create_symlink("a.html", m_dir / "a.html");
    EXPECT_THAT(write(m_dir / "a.html", "x").error().text, HasSubstr("symbolic links"));
}

} // namespace
} // namespace gpuq::cli
