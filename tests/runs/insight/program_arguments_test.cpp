// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/program_arguments.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Texts = std::vector<std::string>;

ParsedProgram parsed(const Texts& program)
{
    return parse_program(program, Redactor());
}

/// `--lr=0.1`, `--amp` for a switch.
Texts arguments(const Texts& program)
{
    Texts texts;
    for (const ProgramArgument& one : parsed(program).arguments) {
        texts.push_back(one.values > 0 ? fmt::format("{}={}", one.name, one.shown) : one.name);
    }
    return texts;
}

TEST(ProgramArguments, HaveNamesInEveryStyle)
{
    EXPECT_THAT(arguments({"train", "--lr", "0.1", "--epochs=5", "-b", "32", "--amp", "-j4"}),
                ElementsAre("--lr=0.1", "--epochs=5", "-b=32", "--amp", "-j=4"));
    EXPECT_THAT(arguments({"train", "data", "model.depth=3", "+opt/name=adam", "out", "--last"}),
                ElementsAre("argument 1=data", "model.depth=3", "+opt/name=adam", "argument 2=out",
                            "--last"));
    EXPECT_THAT(arguments({"train", "--shift", "-1.5", "-2", "--", "-x", "--y"}),
                ElementsAre("--shift=-1.5 -2", "argument 1=-x", "argument 2=--y"));
    EXPECT_THAT(arguments({"train", "https://host/?a=b", "/data/a=b", "=", "-", ""}),
                ElementsAre("argument 1=https://host/?a=b", "argument 2=/data/a=b",
                            "argument 3==", "argument 4=-", "argument 5="));
    EXPECT_THAT(arguments({"train", "--name=", "--title", "", "-x"}),
                ElementsAre("--name=", "--title=", "-x"));
}

TEST(ProgramArguments, TakeAllNumbersButOnlyOneWord)
{
    EXPECT_THAT(arguments({"train", "--betas", "0.9", "0.999", "data", "--seed", "1e3", "--size",
                           "large", "7"}),
                ElementsAre("--betas=0.9 0.999", "argument 1=data", "--seed=1e3", "--size=large",
                            "argument 2=7"));
}

TEST(ProgramArguments, AreListedOnceIfRepeated)
{
    const auto all = parsed({"train", "-v", "--add", "a", "-v", "--add=b"}).arguments;
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].times, 2);
    EXPECT_EQ(all[0].values, 0);
    EXPECT_EQ(all[1].shown, "a b");
}

TEST(ProgramArguments, OfALauncherAreApart)
{
    ParsedProgram one = parsed({"/usr/bin/python3.11", "-u", "train.py", "--lr", "1"});
    EXPECT_EQ(one.program, "/usr/bin/python3.11");
    EXPECT_EQ(one.script, "train.py");
    EXPECT_THAT(arguments({"/usr/bin/python3.11", "-u", "train.py", "--lr", "1"}),
                ElementsAre("python3.11 -u", "--lr=1"));
    EXPECT_THAT(
        arguments({"torchrun", "--standalone", "--nproc-per-node", "2", "a.py", "x"}),
        ElementsAre("torchrun --standalone", "torchrun --nproc-per-node=2", "argument 1=x"));
    one = parsed({"uv", "run", "python", "-m", "pkg.train", "--config", "a.py"});
    EXPECT_EQ(one.script, "-m pkg.train");
    EXPECT_EQ(one.arguments.back().name, "--config");
    EXPECT_EQ(one.arguments.back().shown, "a.py");
}

TEST(ProgramArguments, OfAProgramThatIsNoLauncherAreItsOwn)
{
    EXPECT_EQ(parsed({"/home/ada/train.py", "other.py"}).script, "");
    EXPECT_EQ(parsed({"shuffle", "-m", "x.py"}).script, "");
    EXPECT_THAT(arguments({"bash", "-c", "echo train.py --lr 1"}),
                ElementsAre("-c=echo train.py --lr 1"));
    EXPECT_THAT(arguments({"python"}), IsEmpty());
    EXPECT_THAT(arguments({}), IsEmpty());
}

TEST(ProgramArguments, AreShownWithoutSecrets)
{
    const auto all = parsed({"train", "--api-key", "--hunter2", "--url=https://a:hunter3@b/"});
    ASSERT_EQ(all.arguments.size(), 2U);
    EXPECT_EQ(all.arguments[0].name, "--api-key");
    EXPECT_EQ(all.arguments[0].shown, "[removed]");
    EXPECT_EQ(all.arguments[0].raw, "--hunter2");
    EXPECT_EQ(all.arguments[1].shown, "https://[removed]@b/");
}

} // namespace
} // namespace gpuq
