// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/aside.h"

#include "checkpoint/find.h"
#include "checkpoint/samples.h"
#include "checkpoint/scratch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::checkpoint {
namespace {

using ::testing::ElementsAre;

std::string cut()
{
    return npz_file().substr(0, 50);
}

/// Looks for checkpoints again and returns the paths that are then set aside.
std::vector<std::string> put_aside_in(const Scratch& scratch, const std::string& pattern)
{
    return put_aside(find_checkpoints({scratch.path(), pattern}, {}).value());
}

TEST(PutAside, RenamesWhatIsIncompleteAndNewerThanTheNewestWholeOne)
{
    const Scratch scratch;
    scratch.put("a-1.npz", cut(), 40);
    scratch.put("a-2.npz", npz_file(), 30);
    scratch.put("a-3.npz", cut(), 20);
    scratch.put("a-4.raw", "can't tell", 15);
    scratch.put("a-5/b.npz", cut(), 10);
    scratch.set_age("a-5", 10);
    EXPECT_THAT(put_aside_in(scratch, "a-*"),
                ElementsAre(scratch.at("a-5.incomplete"), scratch.at("a-3.npz.incomplete")));
    EXPECT_TRUE(scratch.has("a-1.npz"));
    EXPECT_TRUE(scratch.has("a-4.raw"));
    EXPECT_FALSE(scratch.has("a-3.npz"));
    EXPECT_EQ(scratch.text("a-5.incomplete/b.npz"), cut());
    EXPECT_THAT(put_aside_in(scratch, "a-*"), ElementsAre());
}

TEST(PutAside, ReplacesNothing)
{
    const Scratch scratch;
    scratch.put("a.npz", cut());
    scratch.put("a.npz.incomplete", "older");
    scratch.put("a.npz.incomplete-2/b", "older");
    EXPECT_THAT(put_aside_in(scratch, "*.npz"), ElementsAre(scratch.at("a.npz.incomplete-3")));
    EXPECT_EQ(scratch.text("a.npz.incomplete"), "older");
}

TEST(PutAside, LeavesAloneWhatIsAnotherFileByNow)
{
    const Scratch scratch;
    scratch.put("a.npz", cut());
    const auto found = find_checkpoints({scratch.path(), "*"}, {}).value();
    scratch.put("b", npz_file());
    std::filesystem::rename(scratch.at("b"), scratch.at("a.npz"));
    EXPECT_THAT(put_aside(found), ElementsAre());
    EXPECT_EQ(scratch.text("a.npz"), npz_file());
}

TEST(PutAside, LeavesAloneAFolderWithOlderCheckpoints)
{
    const Scratch scratch;
    scratch.put("out/iter_0000100/model.pt", torch_file());
    scratch.put("out/iter_0000200/model.pt", torch_file().substr(0, 99));
    scratch.put("out/latest_checkpointed_iteration.txt", "200");
    const auto found = find_checkpoints({scratch.path(), "out"}, {}).value();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].verdict, Verdict::incomplete);
    EXPECT_THAT(put_aside(found), ElementsAre());
    EXPECT_TRUE(scratch.has("out/iter_0000100/model.pt"));
}

} // namespace
} // namespace gpuq::checkpoint
