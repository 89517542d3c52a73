// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/find.h"

#include "checkpoint/samples.h"
#include "checkpoint/scratch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Found> seen(const Scratch& scratch, const std::string& pattern,
                        const std::vector<Found>& before = {})
{
    auto found = find_checkpoints({scratch.path(), pattern}, before);
    EXPECT_TRUE(found) << found.error().text;
    return found ? *std::move(found) : std::vector<Found>();
}

/// `NAME VERDICT STEP` for each checkpoint.
std::vector<std::string> summary(const Scratch& scratch, const std::vector<Found>& all)
{
    constexpr std::array k_keywords = {"whole", "incomplete", "unsettled"};
    std::vector<std::string> lines;
    for (const Found& found : all) {
        EXPECT_EQ(found.why.empty(), found.verdict == Verdict::whole) << found.path;
        lines.push_back(fmt::format("{} {} {}", found.path.substr(scratch.path().size() + 1),
                                    k_keywords.at(static_cast<std::size_t>(found.verdict)),
                                    found.step ? fmt::to_string(*found.step) : "-"));
    }
    return lines;
}

TEST(Look, ListsWhatStandsThereNewestFirst)
{
    const Scratch scratch;
    scratch.put("epoch-0001.npz", npz_file(), 30);
    scratch.put("epoch-0002.npz", npz_file(), 20);
    scratch.put("epoch-0003.npz", npz_file().substr(0, 50), 10);
    scratch.put("epoch-0004.npz.tmp", npz_file(), 5);
    scratch.put(".epoch-0005.npz", npz_file(), 5);
    scratch.put("train.log", "loss", 1);
    const auto found = seen(scratch, "epoch-*");
    EXPECT_THAT(summary(scratch, found),
                ElementsAre("epoch-0003.npz incomplete 3", "epoch-0002.npz whole 2",
                            "epoch-0001.npz whole 1"));
    EXPECT_EQ(newest_whole(found), &found[1]);
}

TEST(Look, LeavesOutWhatAnotherUserHasPut)
{
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can make files of another user";
    }
    constexpr uid_t k_other = 4'000'000;
    const Scratch scratch;
    const auto give = [&](const std::string& name) {
        ASSERT_EQ(::chown(scratch.at(name).c_str(), k_other, k_other), 0);
    };
    scratch.put("step-1.npz", npz_file(), 30);
    scratch.put("step-2.npz", npz_file(), 20);
    give("step-2.npz");
    EXPECT_THAT(summary(scratch, seen(scratch, "*.npz")), ElementsAre("step-1.npz whole 1"));
    EXPECT_THAT(seen(scratch, "step-2.npz"), testing::IsEmpty());
    scratch.put("epoch-3/model.npz", npz_file(), 10);
    scratch.put("epoch-4/model.npz", npz_file(), 10);
    give("epoch-4");
    auto found = seen(scratch, "epoch-*", seen(scratch, "epoch-*"));
    EXPECT_THAT(summary(scratch, found), ElementsAre("epoch-3 whole 3"));
    scratch.put("epoch-3/optimizer.npz", npz_file(), 10);
    give("epoch-3/optimizer.npz");
    found = seen(scratch, "epoch-*", found);
    EXPECT_THAT(summary(scratch, found), ElementsAre("epoch-3 unsettled 3"));
    EXPECT_EQ(found[0].why, "another user owns a file in it");
}

TEST(Look, TellsSizeTimeAndInode)
{
    const Scratch scratch;
    scratch.put("a.npz", npz_file());
    struct stat status = {};
    ASSERT_EQ(::stat(scratch.at("a.npz").c_str(), &status), 0);
    const auto found = seen(scratch, "*.npz");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].bytes, npz_file().size());
    EXPECT_EQ(found[0].inode, status.st_ino);
    EXPECT_EQ(std::chrono::floor<std::chrono::seconds>(found[0].modified),
              std::chrono::sys_seconds(std::chrono::seconds(status.st_mtime)));
}

TEST(Look, OfTheSameAgeThatWithMoreStepsComesFirst)
{
    const Scratch scratch;
    scratch.put("a-9.npz", npz_file());
    scratch.put("a-10.npz", npz_file());
    EXPECT_THAT(summary(scratch, seen(scratch, "*")),
                ElementsAre("a-10.npz whole 10", "a-9.npz whole 9"));
}

TEST(Look, BelievesWhatCanNotTellItsEndAfterTwoLooks)
{
    const Scratch scratch;
    scratch.put("model.raw", "some bytes");
    const auto first = seen(scratch, "*");
    EXPECT_THAT(summary(scratch, first), ElementsAre("model.raw unsettled -"));
    EXPECT_EQ(newest_whole(first), nullptr);
    const auto second = seen(scratch, "*", first);
    EXPECT_THAT(summary(scratch, second), ElementsAre("model.raw whole -"));
    EXPECT_EQ(seen(scratch, "*", second), second);

    scratch.put("model.raw", "some more bytes");
    EXPECT_THAT(summary(scratch, seen(scratch, "*", second)), ElementsAre("model.raw unsettled -"));
    scratch.put("model.raw", "some_bytes", 99);
    EXPECT_THAT(summary(scratch, seen(scratch, "*", second)), ElementsAre("model.raw unsettled -"));
}

TEST(Look, NeverBelievesWhatIsIncompleteHoweverOldItIs)
{
    const Scratch scratch;
    scratch.put("a.npz", npz_file().substr(0, 50));
    auto found = seen(scratch, "*");
    for (int round = 0; round < 3; ++round) {
        found = seen(scratch, "*", found);
        EXPECT_THAT(summary(scratch, found), ElementsAre("a.npz incomplete -"));
    }
}

TEST(Look, SeesThatAWholeOneWasOverwritten)
{
    const Scratch scratch;
    scratch.put("last.npz", npz_file());
    const auto first = seen(scratch, "*");
    scratch.put("last.npz", npz_file().substr(0, 50), 50);
    EXPECT_THAT(summary(scratch, seen(scratch, "*", first)), ElementsAre("last.npz incomplete -"));
}

TEST(Look, TakesAFolderAsOneCheckpoint)
{
    const Scratch scratch;
    scratch.put("checkpoint-500/model.safetensors", safetensors_file(), 20);
    scratch.put("checkpoint-500/trainer_state.json", R"({"global_step": 501})", 30);
    scratch.put("checkpoint-1000/model.safetensors", safetensors_file().substr(0, 99), 5);
    scratch.set_age("checkpoint-500", 25);
    scratch.set_age("checkpoint-1000", 40);
    const auto found = seen(scratch, "checkpoint-*");
    EXPECT_THAT(summary(scratch, found),
                ElementsAre("checkpoint-1000 incomplete 1000", "checkpoint-500 whole 501"));
    EXPECT_EQ(found[0].why, "model.safetensors: its header is cut off");
    EXPECT_EQ(found[1].bytes, safetensors_file().size() + 20);
    EXPECT_EQ(seen(scratch, "checkpoint-*", found), found);
}

TEST(Look, SeesAChangeDeepInAFolderThatWasWhole)
{
    const Scratch scratch;
    scratch.put("5/deep/er/a.npz", npz_file());
    const auto first = seen(scratch, "5");
    const auto second = seen(scratch, "5", first);
    EXPECT_THAT(summary(scratch, second), ElementsAre("5 whole 5"));
    scratch.put("5/deep/er/a.npz", npz_file().substr(0, 50));
    EXPECT_THAT(summary(scratch, seen(scratch, "5", second)), ElementsAre("5 incomplete 5"));
}

TEST(Look, MatchesEachComponentOfThePattern)
{
    const Scratch scratch;
    scratch.put("run-3/step-10/model.pt", torch_file(), 20);
    scratch.put("run-3/step-20/model.pt", torch_file(), 10);
    scratch.put("run-3/step-20/other.pt", torch_file(), 10);
    scratch.put("run-3/tmp-step-30/model.pt", torch_file(), 5);
    EXPECT_THAT(summary(scratch, seen(scratch, "run-3/*/model.pt")),
                ElementsAre("run-3/step-20/model.pt whole 20", "run-3/step-10/model.pt whole 10"));
    const auto absolute = find_checkpoints({"", scratch.at("run-?/step-1*/*.pt")}, {});
    ASSERT_TRUE(absolute);
    EXPECT_THAT(summary(scratch, *absolute), ElementsAre("run-3/step-10/model.pt whole 10"));
}

TEST(Look, TheStepIsNotThatOfAFolderThatThePatternSpells)
{
    const Scratch scratch;
    scratch.put("run-3/last.pt", torch_file());
    EXPECT_THAT(summary(scratch, seen(scratch, "run-3/last.pt")),
                ElementsAre("run-3/last.pt whole -"));
}

TEST(Look, SkipsALinkAsItsTargetIsOne)
{
    const Scratch scratch;
    scratch.put("epoch-3.ckpt", torch_file());
    std::filesystem::create_symlink("epoch-3.ckpt", scratch.at("last.ckpt"));
    EXPECT_THAT(summary(scratch, seen(scratch, "*.ckpt")), ElementsAre("epoch-3.ckpt whole 3"));
    EXPECT_THAT(summary(scratch, seen(scratch, "last.ckpt")), ElementsAre("epoch-3.ckpt whole 3"));
}

TEST(Look, FollowsNoLinkOutOfItsFolder)
{
    const Scratch scratch;
    const Scratch other;
    other.put("5/a.npz", npz_file());
    std::filesystem::create_symlink(other.at("5/a.npz"), scratch.at("a-1.npz"));
    std::filesystem::create_symlink(other.at("5"), scratch.at("a-2"));
    EXPECT_THAT(seen(scratch, "a-*"), ElementsAre());
    EXPECT_THAT(seen(scratch, "a-*/*"), ElementsAre());
    EXPECT_THAT(seen(scratch, "a-1.npz"), ElementsAre());

    scratch.put("6/own.npz", npz_file());
    std::filesystem::create_symlink(other.path(), scratch.at("6/out"));
    const auto found = seen(scratch, "6");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].bytes, npz_file().size());
}

TEST(Look, IsNotHeldUpByAFifo)
{
    const Scratch scratch;
    scratch.put("7/a.npz", npz_file());
    ASSERT_EQ(::mkfifo(scratch.at("epoch-9.npz").c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo(scratch.at("7/b.npz").c_str(), 0600), 0);
    EXPECT_THAT(summary(scratch, seen(scratch, "*")), ElementsAre("7 unsettled 7"));
}

TEST(Look, JudgesTheNewestOnly)
{
    const Scratch scratch;
    for (int number = 0; number < 70; ++number) {
        scratch.put(fmt::format("a-{}.npz", number), npz_file(), 1000 - number);
    }
    const auto found = seen(scratch, "*");
    ASSERT_EQ(found.size(), k_most_candidates);
    EXPECT_EQ(found.front().step, 69U);
    EXPECT_EQ(found.back().step, 6U);
}

TEST(Look, SaysNothingOfAFolderThatIsNotThere)
{
    const Scratch scratch;
    EXPECT_THAT(find_checkpoints({scratch.at("none"), "*"}, {}).value(), ElementsAre());
    EXPECT_THAT(find_checkpoints({scratch.path(), "none/*/a"}, {}).value(), ElementsAre());
}

TEST(Look, SaysWhatItCanNotLookInto)
{
    const Scratch scratch;
    scratch.put("file", "text");
    const auto found = find_checkpoints({scratch.at("file"), "*"}, {});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().kind, Error::Kind::io);
    EXPECT_THAT(found.error().text, HasSubstr("file: Not a directory"));
}

TEST(Look, RefusesAPlaceThatIsNone)
{
    for (const Place& place : {Place{"relative", "*"}, Place{"/tmp", ""}, Place{"/tmp", "/"}}) {
        const auto found = find_checkpoints(place, {});
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().kind, Error::Kind::usage);
    }
}

TEST(Look, LeavesUnsettledWhatItCanNotRead)
{
    if (::geteuid() == 0) {
        GTEST_SKIP() << "root may read everything";
    }
    const Scratch scratch;
    scratch.put("a-1.npz", npz_file());
    scratch.put("a-2/b.npz", npz_file());
    ASSERT_EQ(::chmod(scratch.at("a-1.npz").c_str(), 0), 0);
    ASSERT_EQ(::chmod(scratch.at("a-2/b.npz").c_str(), 0), 0);
    const auto first = seen(scratch, "*");
    const auto second = seen(scratch, "*", first);
    ASSERT_EQ(second.size(), 2U);
    for (const Found& found : second) {
        EXPECT_EQ(found.verdict, Verdict::unsettled);
        EXPECT_THAT(found.why, HasSubstr("can't be read: Permission denied"));
    }
}

} // namespace
} // namespace gpuq::checkpoint
