// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/state_dir.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

StateDirWords all()
{
    return {"/flag", "/variable", "/scratch/%u/gpuq", "/xdg", "/home/ada", "ada"};
}

TEST(StateDir, FollowsTheOrderOfTheContract)
{
    StateDirWords words = all();
    EXPECT_EQ(choose_state_dir(words).value(), "/flag");
    words.flag.reset();
    EXPECT_EQ(choose_state_dir(words).value(), "/variable");
    words.variable = "";
    EXPECT_EQ(choose_state_dir(words).value(), "/scratch/ada/gpuq");
    words.config.reset();
    EXPECT_EQ(choose_state_dir(words).value(), "/xdg/gpuq");
    words.state_home = "relative";
    EXPECT_EQ(choose_state_dir(words).value(), "/home/ada/.local/state/gpuq");
}

TEST(StateDir, RefusesRelativePathsAndSaysWhoGaveThem)
{
    StateDirWords words = all();
    words.flag = "here";
    EXPECT_EQ(choose_state_dir(words).error().text,
              "--state-dir: the state directory 'here' is not an absolute path");
    words.flag.reset();
    words.variable = "there";
    EXPECT_EQ(choose_state_dir(words).error().kind, Error::Kind::usage);
}

TEST(StateDir, DoesNotLetAUserNameLeadElsewhere)
{
    for (const char* user : {"", "..", "a/b"}) {
        StateDirWords words = all();
        words.flag.reset();
        words.variable.reset();
        words.user = user;
        EXPECT_FALSE(choose_state_dir(words)) << user;
    }
}

TEST(StateDir, SaysThatThereIsNoHome)
{
    EXPECT_EQ(choose_state_dir({}).error().kind, Error::Kind::usage);
}

} // namespace
} // namespace gpuq
