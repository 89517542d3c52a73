// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/rank_notes.h"

#include "io/descriptor.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>

namespace gpuq::supervisor {
namespace {

class RankNotesTest : public testing::Test {
protected:
    RankNotesTest()
    {
        std::string name = testing::TempDir() + "gpuq-ranks-XXXXXX";
        directory = ::mkdtemp(name.data());
        link.reset(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    ~RankNotesTest() override { std::filesystem::remove_all(directory); }
    std::filesystem::path directory;
    Descriptor link;
};

TEST_F(RankNotesTest, NothingIsTheAnswerOfAFolderWithoutNotes)
{
    EXPECT_EQ(read_rank_notes(link.get()).first, std::nullopt);
    note_end(link.get(), {1, "n1", 256});
    EXPECT_EQ(read_rank_notes(link.get()).first, std::nullopt) << "nowhere to leave it";
}

TEST_F(RankNotesTest, TheFirstEndStays)
{
    make_rank_notes(link.get());
    note_end(link.get(), {3, "n1", 0x300});
    note_end(link.get(), {0, "n0", 15});
    EXPECT_EQ(read_rank_notes(link.get()).first, (RankEnd{3, "n1", 0x300}));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory / "ranks"), {}), 1);
}

TEST_F(RankNotesTest, OfANodesRanksTheHighestCountHolds)
{
    make_rank_notes(link.get());
    note_memory(link.get(), 0, "n0", {1, 0});
    note_memory(link.get(), 0, "n0", {2, 0});
    note_memory(link.get(), 1, "n0", {1, 0});
    note_memory(link.get(), 2, "n1", {0, 4});
    EXPECT_EQ(read_rank_notes(link.get()).memory,
              (std::map<std::string, MemoryKills>{{"n0", {2, 0}}, {"n1", {0, 4}}}));
}

TEST_F(RankNotesTest, WhatIsNoNoteIsLeftOut)
{
    make_rank_notes(link.get());
    std::ofstream(directory / "ranks" / "first") << "1 256 n1"; // truncated
    std::ofstream(directory / "ranks" / "memory.0") << "x 0 n1\n";
    std::filesystem::create_symlink("/etc/passwd", directory / "ranks" / "memory.1");
    EXPECT_EQ(read_rank_notes(link.get()).first, std::nullopt);
    EXPECT_TRUE(read_rank_notes(link.get()).memory.empty());
}

} // namespace
} // namespace gpuq::supervisor
