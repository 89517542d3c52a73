// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

namespace gpuq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
namespace fs = std::filesystem;

class FilesBelow : public testing::Test {
protected:
    FilesBelow()
    {
        char name[] = "/tmp/gpuq-files-XXXXXX";
        m_directory = ::mkdtemp(name);
    }
    ~FilesBelow() override { fs::remove_all(m_directory); }

    void write(const std::string& path, const std::string& text, int age)
    {
        const fs::path whole = fs::path(m_directory) / path;
        fs::create_directories(whole.parent_path());
        std::ofstream(whole) << text;
        fs::last_write_time(whole, fs::file_time_type::clock::now() - std::chrono::seconds(age));
    }

    std::vector<std::string> found(std::chrono::seconds age)
    {
        const auto files = m_files.changed_since(
            m_directory,
            std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now()) - age,
            [](std::string_view name) { return name.ends_with(".csv"); });
        std::vector<std::string> paths;
        for (const Files::File& file : *files) {
            paths.push_back(file.path);
        }
        return paths;
    }

    std::string m_directory;
    PosixFiles m_files;
};

TEST_F(FilesBelow, AreFoundTheNewestFirst)
{
    write("a.csv", "1", 30);
    write("logs/version_1/b.csv", "12", 10);
    write("logs/b.txt", "1", 10);
    write("old.csv", "1", 5000);
    write(".git/c.csv", "1", 10);
    write("1/2/3/4/5/6/deep.csv", "1", 20);
    write("1/2/3/4/5/6/7/too-deep.csv", "1", 20);
    EXPECT_THAT(found(std::chrono::seconds(60)),
                ElementsAre("logs/version_1/b.csv", "1/2/3/4/5/6/deep.csv", "a.csv"));
    EXPECT_EQ(m_files.changed_since(m_directory + "/none", Time(), {}).error().kind,
              Error::Kind::missing);
}

TEST_F(FilesBelow, AreReadWithoutFollowingALink)
{
    write("logs/a.csv", "0123456789", 0);
    fs::create_symlink("logs", fs::path(m_directory) / "link");
    fs::create_symlink("logs/a.csv", fs::path(m_directory) / "link.csv");
    ASSERT_EQ(::mkfifo((m_directory + "/fifo.csv").c_str(), 0600), 0);
    EXPECT_THAT(found(std::chrono::hours(1)), ElementsAre("logs/a.csv"));
    EXPECT_EQ(*m_files.read_at(m_directory, "logs/a.csv", 8, 10), "89");
    EXPECT_EQ(*m_files.read_at(m_directory, "logs/a.csv", 2, 3), "234");
    EXPECT_FALSE(m_files.read_at(m_directory, "link/a.csv", 0, 10));
    EXPECT_FALSE(m_files.read_at(m_directory, "link.csv", 0, 10));
    EXPECT_FALSE(m_files.read_at(m_directory, "fifo.csv", 0, 10));
    EXPECT_FALSE(m_files.read_at(m_directory, "../logs/a.csv", 0, 10));
    EXPECT_FALSE(m_files.read_at(m_directory, "/etc/passwd", 0, 10));
    EXPECT_FALSE(m_files.read_at(m_directory, "", 0, 10));
}

TEST_F(FilesBelow, OfATreeWithoutEndAreNotAllLookedAt)
{
    fs::create_directories(fs::path(m_directory) / "data");
    for (int i = 0; i < 21'000; ++i) {
        std::ofstream(fs::path(m_directory) / "data" / std::to_string(i));
    }
    write("a.csv", "1", 0);
    EXPECT_THAT(found(std::chrono::hours(1)), ElementsAre("a.csv"));
    EXPECT_THAT(found(std::chrono::hours(-1)), IsEmpty());
}

} // namespace
} // namespace gpuq
