// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using Strings = std::vector<std::string>;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

Strings completed(const Strings& arguments)
{
    return completions(arguments, {[] {
                                       return Strings{"4711", "4712", "99_1"};
                                   },
                                   [] {
                                       return Strings{"calibration", "gpu"};
                                   },
                                   [](const std::string& beginning) {
                                       return Strings{beginning + "train.py", "other/"};
                                   },
                                   [] {
                                       return Strings{"base", "torch"};
                                   },
                                   [] {
                                       return Strings{"cuda", "cuda/12.4"};
                                   }});
}

TEST(Completions, CommandsOptionsRunsFilesAndEnvironments)
{
    EXPECT_THAT(completed({"sho"}), ElementsAre("show"));
    EXPECT_THAT(completed({"sh"}), ElementsAre("shell", "show"));
    EXPECT_THAT(completed({"stop", "47"}), ElementsAre("4711", "4712"));
    EXPECT_THAT(completed({"run", "--checkp"}), ElementsAre("--checkpoint"));
    EXPECT_THAT(completed({"run", "-p", ""}), ElementsAre("calibration", "gpu"));
    EXPECT_THAT(completed({"run", "--conda", "to"}), ElementsAre("torch"));
    EXPECT_THAT(completed({"run", "--module", "cuda"}), ElementsAre("cuda", "cuda/12.4"));
    EXPECT_THAT(completed({"run", "t"}), ElementsAre("ttrain.py"));
    EXPECT_THAT(completed({"run", "--color", "a"}), ElementsAre("always", "auto"));
    EXPECT_THAT(completed({"cluster", "d"}), ElementsAre("down"));
    EXPECT_THAT(completed({"help", "to"}), ElementsAre("top"));
}

TEST(Completions, FilesOfAProgramInAnotherDirectory)
{
    EXPECT_THAT(completed({"run", "-D", "proj/x", ""}), ElementsAre("train.py"));
    EXPECT_THAT(completed({"run", "--chdir", "proj", "t"}), ElementsAre("ttrain.py"));
    EXPECT_THAT(completed({"run", "--chdir", "proj/", "--source", "t"}), ElementsAre("ttrain.py"));
    EXPECT_THAT(completed({"run", "--chdir", "proj", "/t"}), ElementsAre("/ttrain.py"));
    EXPECT_THAT(completed({"run", "--chdir", "o"}), ElementsAre("other/"));
    EXPECT_THAT(completed({"run", "--venv", "t"}), IsEmpty()) << "a file is no directory";
    EXPECT_THAT(completed({"run", "--", "-D", "proj", "t"}), ElementsAre("ttrain.py"));
}

/// After `--` everything is the program's.
TEST(Completions, NoOptionsOfTheProgram)
{
    EXPECT_THAT(completed({"run", "--", "--checkp"}), Not(Contains("--checkpoint")));
}

TEST(Completions, NothingForWhatIsNoCommand)
{
    EXPECT_THAT(completed({"nosuch", ""}), IsEmpty());
    EXPECT_THAT(completed({}), IsEmpty());
    EXPECT_THAT(completed({""}), IsSupersetOf({"run", "top", "show"}));
}

} // namespace
} // namespace gpuq::cli
