// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/state_dir.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

StateDirInputs all()
{
    return {"/flag", "/variable", "/scratch/%u/gpuq", "/xdg", "/home/ada", "ada"};
}

TEST(StateDir, FollowsTheOrderOfTheContract)
{
    StateDirInputs arguments = all();
    EXPECT_EQ(choose_state_dir(arguments).value(), "/flag");
    arguments.flag.reset();
    EXPECT_EQ(choose_state_dir(arguments).value(), "/variable");
    arguments.variable = "";
    EXPECT_EQ(choose_state_dir(arguments).value(), "/scratch/ada/gpuq");
    arguments.config.reset();
    EXPECT_EQ(choose_state_dir(arguments).value(), "/xdg/gpuq");
    arguments.state_home = "relative";
    EXPECT_EQ(choose_state_dir(arguments).value(), "/home/ada/.local/state/gpuq");
}

TEST(StateDir, RefusesRelativePathsAndSaysWhoGaveThem)
{
    StateDirInputs arguments = all();
    arguments.flag = "here";
    EXPECT_EQ(choose_state_dir(arguments).error().text,
              "--state-dir: the state directory 'here' is not an absolute path");
    arguments.flag.reset();
    arguments.variable = "there";
    EXPECT_EQ(choose_state_dir(arguments).error().kind, Error::Kind::usage);
}

TEST(StateDir, DoesNotLetAUserNameLeadElsewhere)
{
    for (const char* user : {"", "..", "a/b"}) {
        StateDirInputs arguments = all();
        arguments.flag.reset();
        arguments.variable.reset();
        arguments.user = user;
        EXPECT_FALSE(choose_state_dir(arguments)) << user;
    }
}

TEST(StateDir, SaysThatThereIsNoHome)
{
    EXPECT_EQ(choose_state_dir({}).error().kind, Error::Kind::usage);
}

} // namespace
} // namespace gpuq
