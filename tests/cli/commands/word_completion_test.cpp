// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/word_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace gpuq::cli {
namespace {

using Strings = std::vector<std::string>;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

Strings words(const Strings& arguments)
{
    return completed_words(arguments, {[] { return Strings{"4711", "4712", "99_1"}; },
                                       [] { return Strings{"calibration", "gpu"}; },
                                       [](const std::string& beginning) {
                                           return Strings{beginning + "train.py", "other/"};
                                       }});
}

TEST(CompletedWords, CommandsOptionsRunsAndFiles)
{
    EXPECT_THAT(words({"sho"}), ElementsAre("show"));
    EXPECT_THAT(words({"sh"}), ElementsAre("shell", "show"));
    EXPECT_THAT(words({"stop", "47"}), ElementsAre("4711", "4712"));
    EXPECT_THAT(words({"run", "--checkp"}), ElementsAre("--checkpoint"));
    EXPECT_THAT(words({"run", "-p", ""}), ElementsAre("calibration", "gpu"));
    EXPECT_THAT(words({"run", "t"}), ElementsAre("ttrain.py"));
    EXPECT_THAT(words({"run", "--color", "a"}), ElementsAre("always", "auto"));
    EXPECT_THAT(words({"cluster", "d"}), ElementsAre("down"));
    EXPECT_THAT(words({"help", "to"}), ElementsAre("top"));
}

/// After `--` everything is the program's.
TEST(CompletedWords, NoOptionsOfTheProgram)
{
    EXPECT_THAT(words({"run", "--", "--checkp"}), Not(Contains("--checkpoint")));
}

TEST(CompletedWords, NothingForWhatIsNoCommand)
{
    EXPECT_THAT(words({"nosuch", ""}), IsEmpty());
    EXPECT_THAT(words({}), IsEmpty());
    EXPECT_THAT(words({""}), IsSupersetOf({"run", "top", "show"}));
}

TEST(Paths, BeginWithTheText)
{
    const std::filesystem::path top = std::filesystem::path(testing::TempDir()) / "gpuq-words";
    std::filesystem::create_directories(top / "training");
    std::ofstream(top / "train.py") << "";
    std::ofstream(top / ".hidden") << "";
    const std::string begin = top.string() + "/";
    EXPECT_THAT(paths_beginning_with(begin + "tra"),
                testing::UnorderedElementsAre(begin + "train.py", begin + "training/"));
    EXPECT_THAT(paths_beginning_with(begin), Not(Contains(begin + ".hidden")));
    EXPECT_THAT(paths_beginning_with(begin + ".h"), ElementsAre(begin + ".hidden"));
    EXPECT_THAT(paths_beginning_with(begin + "no/such"), IsEmpty());
    std::filesystem::remove_all(top);
}

} // namespace
} // namespace gpuq::cli
