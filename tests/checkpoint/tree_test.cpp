// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/tree.h"

#include "checkpoint/scratch.h"

#include "core/timestamp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <limits>

#include <fcntl.h>

namespace gpuq::checkpoint {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> paths(const Tree& tree)
{
    std::vector<std::string> all;
    for (const Part& part : tree.parts) {
        all.push_back(part.path);
    }
    return all;
}

Tree walked(const std::string& path)
{
    const Descriptor directory = open_directory(AT_FDCWD, path);
    return walk(directory.get(), leave_as_it_is);
}

TEST(OpenFile, OpensNothingButRegularFiles)
{
    const Scratch scratch;
    scratch.put("file", "text");
    std::filesystem::create_symlink("file", scratch.at("link"));
    ASSERT_EQ(::mkfifo(scratch.at("fifo").c_str(), 0600), 0);
    EXPECT_TRUE(open_file(AT_FDCWD, scratch.at("file")).file);
    for (const char* name : {"link", "fifo", "."}) {
        const OpenFile opened = open_file(AT_FDCWD, scratch.at(name));
        EXPECT_FALSE(opened.file) << name;
        EXPECT_EQ(opened.error, ELOOP) << name;
    }
    EXPECT_EQ(open_file(AT_FDCWD, scratch.at("none")).error, ENOENT);
}

TEST(Walk, GivesFoldersBeforeWhatIsInThem)
{
    const Scratch scratch;
    scratch.put("b/c/d", "text");
    scratch.put("a", "");
    std::filesystem::create_directory_symlink("..", scratch.at("b/up"));
    const Tree tree = walked(scratch.path());
    EXPECT_THAT(paths(tree), ElementsAre("a", "b", "b/c", "b/c/d", "b/up"));
    EXPECT_EQ(tree.parts[3].kind, Kind::file);
    EXPECT_EQ(tree.parts[3].bytes, 4U);
    EXPECT_EQ(tree.parts[4].kind, Kind::link);
    EXPECT_TRUE(tree.is_all);
}

TEST(Walk, StopsWhereItIsTooDeep)
{
    const Scratch scratch;
    std::string deep = "0";
    for (int depth = 1; depth < 60; ++depth) {
        deep += "/0";
    }
    std::filesystem::create_directories(scratch.at(deep));
    const Tree tree = walked(scratch.path());
    EXPECT_FALSE(tree.is_all);
    EXPECT_LT(tree.parts.size(), 40U);
}

TEST(ModifiedOf, IsOfAYearThatHasFourDigits)
{
    struct stat status = {};
    status.st_mtim = {1'700'000'000, 123'456'789};
    EXPECT_EQ(to_iso8601(modified_of(status)), "2023-11-14T22:13:20.123456Z");
    status.st_mtim = {std::numeric_limits<time_t>::max(), 0};
    EXPECT_EQ(to_iso8601(modified_of(status)), "9999-12-31T23:59:59.000000Z");
}

} // namespace
} // namespace gpuq::checkpoint
