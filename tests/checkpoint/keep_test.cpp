// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/keep.h"

#include "checkpoint/find.h"
#include "checkpoint/samples.h"
#include "checkpoint/scratch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <sys/stat.h>

namespace gpuq::checkpoint {
namespace {

using ::testing::HasSubstr;

Found the_one(const Scratch& scratch, const std::string& name)
{
    const auto found = find_checkpoints({scratch.path(), name}, {}).value();
    return found.size() == 1 ? found[0] : Found{};
}

ino_t inode(const std::string& path)
{
    struct stat status = {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::size_t names_in(const std::string& directory)
{
    const std::filesystem::directory_iterator entries(directory);
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

/// Compares everything but the path; the inode must differ.
bool is_copy_of(const Found& copy, const Found& original)
{
    return copy.bytes == original.bytes && copy.modified == original.modified &&
           copy.verdict == original.verdict && copy.step == original.step &&
           copy.inode != original.inode;
}

TEST(Keep, CopiesAFileThatTheProgramMayThenOverwrite)
{
    const Scratch scratch;
    scratch.put("epoch-3.npz", npz_file(std::string(3 << 20, 'w')));
    const Found found = the_one(scratch, "epoch-3.npz");
    EXPECT_EQ(keep(found, scratch.at("kept"), KeepBy::copy).value(),
              scratch.at("kept/epoch-3.npz"));
    EXPECT_TRUE(is_copy_of(the_one(scratch, "kept/epoch-3.npz"), found));
    scratch.put("epoch-3.npz", "overwritten");
    EXPECT_EQ(scratch.text("kept/epoch-3.npz"), npz_file(std::string(3 << 20, 'w')));
    EXPECT_EQ(names_in(scratch.at("kept")), 1U);
}

TEST(Keep, LinksAFileWhereThatIsAllowed)
{
    const Scratch scratch;
    scratch.put("a.npz", npz_file());
    const Found found = the_one(scratch, "a.npz");
    ASSERT_TRUE(keep(found, scratch.at("kept"), KeepBy::link));
    const ino_t kept = inode(scratch.at("kept/a.npz"));
    const ino_t copied = inode(keep(found, scratch.at("copied"), KeepBy::copy).value());
    EXPECT_NE(copied, found.inode);
    std::filesystem::remove(scratch.at("a.npz")); // pruned
    EXPECT_EQ(scratch.text("kept/a.npz"), npz_file());
    EXPECT_EQ(scratch.text("copied/a.npz"), npz_file());
    if (kept != found.inode) {
        GTEST_SKIP() << "this file system clones";
    }
}

TEST(Keep, CopiesAFolderWithAllThatIsInIt)
{
    const Scratch scratch;
    scratch.put("step-7/model.safetensors", safetensors_file());
    scratch.put("step-7/below/deep/trainer_state.json", "{}");
    scratch.put("step-7/trainer_state.json", "{}");
    std::filesystem::create_symlink("model.safetensors", scratch.at("step-7/last"));
    ASSERT_EQ(::mkfifo(scratch.at("step-7/fifo").c_str(), 0600), 0);
    scratch.set_age("step-7/below/deep", 50);
    scratch.set_age("step-7/below", 40);
    scratch.set_age("step-7", 30);
    const Found found = the_one(scratch, "step-7");
    EXPECT_EQ(keep(found, scratch.at("kept"), KeepBy::copy).value(), scratch.at("kept/step-7"));
    EXPECT_TRUE(is_copy_of(the_one(scratch, "kept/step-7"), found));
    EXPECT_EQ(scratch.text("kept/step-7/model.safetensors"), safetensors_file());
    EXPECT_EQ(scratch.text("kept/step-7/below/deep/trainer_state.json"), "{}");
    EXPECT_EQ(std::filesystem::read_symlink(scratch.at("kept/step-7/last")), "model.safetensors");
    EXPECT_FALSE(scratch.has("kept/step-7/fifo"));
    EXPECT_EQ(names_in(scratch.at("kept")), 1U);
}

TEST(Keep, ReplacesAnOlderCopyOfThatName)
{
    const Scratch scratch;
    for (const char* text : {"{}", R"({"global_step": 2})"}) {
        scratch.put("last/trainer_state.json", text);
        scratch.put("last.npz", npz_file(text));
        ASSERT_TRUE(keep(the_one(scratch, "last"), scratch.at("kept"), KeepBy::copy));
        ASSERT_TRUE(keep(the_one(scratch, "last.npz"), scratch.at("kept"), KeepBy::copy));
        EXPECT_EQ(scratch.text("kept/last/trainer_state.json"), text);
        EXPECT_EQ(scratch.text("kept/last.npz"), npz_file(text));
    }
    EXPECT_EQ(names_in(scratch.at("kept")), 2U);
}

TEST(Keep, RemovesWhatAKilledOneHasLeft)
{
    const Scratch scratch;
    scratch.put("a.npz", npz_file());
    scratch.put("kept/.a.npz.keeping/half", "a folder once");
    ASSERT_TRUE(keep(the_one(scratch, "a.npz"), scratch.at("kept"), KeepBy::copy));
    EXPECT_EQ(scratch.text("kept/a.npz"), npz_file());
    EXPECT_EQ(names_in(scratch.at("kept")), 1U);
}

TEST(Keep, RefusesWhatIsNotAnyMoreWhatWasFound)
{
    const Scratch scratch;
    scratch.put("a.npz", npz_file());
    scratch.put("b/a.npz", npz_file());
    const Found file = the_one(scratch, "a.npz");
    const Found directory = the_one(scratch, "b");
    scratch.put("a.npz", npz_file(), 99);
    std::filesystem::remove(scratch.at("b/a.npz")); // pruned in the meantime
    for (const Found& found : {file, directory}) {
        const auto kept = keep(found, scratch.at("kept"), KeepBy::copy);
        ASSERT_FALSE(kept);
        EXPECT_EQ(kept.error().kind, Error::Kind::busy);
        EXPECT_THAT(kept.error().text, HasSubstr("try again"));
    }
    EXPECT_EQ(names_in(scratch.at("kept")), 0U);
}

TEST(Keep, SaysWhenItsFolderCanNotBe)
{
    const Scratch scratch;
    scratch.put("a.npz", npz_file());
    for (const std::string& directory : {scratch.at("a.npz"), scratch.at("none/kept")}) {
        const auto kept = keep(the_one(scratch, "a.npz"), directory, KeepBy::copy);
        ASSERT_FALSE(kept);
        EXPECT_EQ(kept.error().kind, Error::Kind::io);
    }
}

} // namespace
} // namespace gpuq::checkpoint
