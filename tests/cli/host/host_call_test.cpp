// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"
#include "cli/host/host_call.h"

#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using Arguments = std::vector<std::string>;

std::optional<HostCall> call(const Arguments& arguments, const std::optional<std::string>& set = {})
{
    return host_call(arguments, set, every_verb());
}

/// Expects the host to come from --host.
HostCall asked_for(HostCall expected)
{
    expected.called = "gpuq --host " + expected.place;
    return expected;
}

TEST(HostCall, IsWhatIsAskedForBeforeOrAfterTheVerb)
{
    const HostCall expected = asked_for({"login1", {"run", "-t", "2h", "a"}, "run", false, ""});
    EXPECT_EQ(call({"--host", "login1", "run", "-t", "2h", "a"}), expected);
    EXPECT_EQ(call({"--host=login1", "run", "-t", "2h", "a"}), expected);
    EXPECT_EQ(call({"run", "-t", "2h", "--host", "login1", "a"}), expected);
    EXPECT_EQ(call({"run", "--host=login1", "-t", "2h", "a"}), expected);
    EXPECT_EQ(call({"ls", "--all", "--host", "login1:w"}),
              asked_for({"login1:w", {"ls", "--all"}, "ls", false, ""}));
    EXPECT_EQ(call({"ls", "--host", "login1:~/w"})->called, "gpuq --host 'login1:~/w'");
}

TEST(HostCall, AProgramsOwnHostIsTheProgramsOwn)
{
    EXPECT_EQ(call({"run", "prog", "--host", "x"}), std::nullopt);
    EXPECT_EQ(call({"--host", "login1", "run", "prog", "--host", "x"}),
              asked_for({"login1", {"run", "prog", "--host", "x"}, "run", false, ""}));
    EXPECT_EQ(call({"run", "--host", "login1", "--", "prog", "--host=x"}),
              asked_for({"login1", {"run", "--", "prog", "--host=x"}, "run", false, ""}));
}

TEST(HostCall, TheWordsOfARunThatIsStartedAgainAreTheProgramsOwn)
{
    HostCall expected{
        "login1", {"again", "7", "-t", "2h", "--", "--host", "a"}, "again", false, ""};
    EXPECT_EQ(call({"again", "7", "-t", "2h", "--host", "login1", "--", "--host", "a"}),
              asked_for(expected));
    expected.arguments = {"again", "--detach", "7", "--", "--no-stdin", "--forward", "1"};
    expected.detach = true;
    EXPECT_EQ(call(expected.arguments, "login1"), expected);
    EXPECT_TRUE(reads_input("again") && follows_run("again"));
    EXPECT_FALSE(takes_paths("again")) << "the run's directory, not the current one";
}

TEST(HostCall, FollowsTheSettingUnlessItIsAskedForOtherwise)
{
    EXPECT_EQ(call({"ls"}), std::nullopt);
    EXPECT_EQ(call({"-Q", "ls"}, "login1"), (HostCall{"login1", {"-Q", "ls"}, "ls", true, ""}));
    EXPECT_EQ(call({"--host", "login2", "ls"}, "login1")->place, "login2");
    EXPECT_EQ(call({"stop", "--cluster", "big", "last"}, "login1")->cluster, "big");
    EXPECT_EQ(call({"cluster", "up"}, "login1"), std::nullopt);
    EXPECT_EQ(call({"--host", "login2", "cluster", "up"}, "login1")->place, "login2");
}

TEST(HostCall, AllButProgramsAndScreensIsText)
{
    const auto text = [](const Arguments& arguments) {
        return prints_text(*call(arguments, "login1"));
    };
    for (const Arguments& arguments : {Arguments{"ls"},
                                       {"wait", "7"},
                                       {"site"},
                                       {"code", "7"},
                                       {"sweep", "prog"},
                                       {"tensorboard"},
                                       {"run", "--detach", "prog"},
                                       {"again", "--detach", "7"},
                                       {"resume", "7"},
                                       {"top", "--once"},
                                       {"top", "--json"},
                                       {"--json", "top"},
                                       {"run", "--dry-run", "prog"},
                                       {"clean"},
                                       {"notebook"},
                                       {"rehearse", "prog"},
                                       {"of-a-later-release"},
                                       {"shell", "--detach"}}) {
        EXPECT_TRUE(text(arguments)) << arguments[0];
    }
    for (const Arguments& arguments : {Arguments{"run", "prog"},
                                       {"run", "prog", "--detach"},
                                       {"shell"},
                                       {"attach"},
                                       {"logs", "7"},
                                       {"top"},
                                       {"connect", "7"}}) {
        EXPECT_FALSE(text(arguments)) << arguments[0];
    }
}

TEST(HostCall, TheFileOfACopiedLogIsHere)
{
    HostCall expected{"login1", {"-Q", "logs", "-f", "last"}, "logs", true, "", "x y"};
    expected.follow = true;
    EXPECT_EQ(call({"-Q", "logs", "-f", "--to", "x y", "last"}, "login1"), expected);
    EXPECT_EQ(call({"-Q", "logs", "-f", "--to=x y", "last"}, "login1"), expected);
    EXPECT_EQ(call({"--host", "login1", "-Q", "logs", "-f", "last", "--to", "x y"}),
              asked_for(expected));
    EXPECT_EQ(call({"run", "a", "--to", "b"}, "login1")->copy_to, "");
}

TEST(HostCall, LinesForSshAreForThisMachines)
{
    EXPECT_TRUE(call({"connect", "--config", "last"}, "login1")->ssh_config);
    EXPECT_FALSE(call({"connect", "last"}, "login1")->ssh_config);
    EXPECT_FALSE(call({"run", "connect", "--config"}, "login1")->ssh_config);
    EXPECT_EQ(call({"connect", "--config", "last"}, "login1")->run, "last");
    // An option unknown to this client is not sent: the output would not be the expected lines.
    EXPECT_TRUE(call({"connect", "--config", "--new", "last"}, "login1")->unknown_options);
    EXPECT_FALSE(call({"connect", "--config", "last"}, "login1")->unknown_options);
}

TEST(HostCall, FurtherOptionsStandBeforeTheOperands)
{
    const Arguments more{"--a", "--b"};
    EXPECT_EQ(with_options(*call({"connect", "--config", "--", "last"}, "login1"), more),
              (Arguments{"connect", "--a", "--b", "--config", "--", "last"}));
    EXPECT_EQ(
        with_options(*call({"-Q", "--cluster", "connect", "--host", "login1", "connect", "last",
                            "--config"}),
                     more),
        (Arguments{"-Q", "--cluster", "connect", "connect", "--a", "--b", "last", "--config"}));
}

TEST(HostCall, ALogGoesOnAsItWasAskedFor)
{
    EXPECT_EQ(log_again(*call({"-Q", "logs", "--cluster", "big", "-f", "last"}, "login1"),
                        {"--shown", "3,4"}, "KEY"),
              (Arguments{"--cluster", "big", "-Q", "logs", "-f", "--shown", "3,4", "KEY"}));
    EXPECT_EQ(log_again(*call({"logs", "--", "last"}, "login1"), {"--after", "9:0:0"}, "KEY"),
              (Arguments{"logs", "--after", "9:0:0", "KEY"}));
}

TEST(HostCall, WhatIsForwardedIsOfThisMachine)
{
    HostCall expected{"login1", {"run", "-t", "2h", "a", "--forward", "1"}, "run", false, ""};
    expected.forwards = {"6006"};
    EXPECT_EQ(call({"--forward", "6006", "run", "-t", "2h", "a", "--forward", "1"}, "login1"),
              expected);
    expected.forwards = {"6006", "8888:80", "9:x:9"};
    EXPECT_EQ(call({"--forward=6006", "run", "--forward=8888:80", "--host", "login1", "-t", "2h",
                    "--forward", "9:x:9", "a", "--forward", "1"}),
              asked_for(expected));
}

TEST(HostCall, HelpAndCompletionStayHere)
{
    for (const Arguments& arguments : {Arguments{"help"},
                                       {"--help"},
                                       {"run", "--help"},
                                       {"completion", "bash"},
                                       {"serve"},
                                       {}}) {
        EXPECT_EQ(call(arguments, "login1"), std::nullopt);
    }
}

TEST(HostCall, WhatIsUnknownHereMayBeKnownThere)
{
    EXPECT_EQ(call({"newverb", "--new"}, "login1")->arguments, (Arguments{"newverb", "--new"}));
    EXPECT_EQ(call({"ls", "--newer-option"}, "login1")->arguments,
              (Arguments{"ls", "--newer-option"}));
}

TEST(HostCall, TheProcessThatCarriesANotebookGoesThere)
{
    EXPECT_FALSE(call({"--host", "login1", "notebook", "--lab"})->carries);
    EXPECT_TRUE(call({"--host", "login1", "notebook", "--carry", "--lab"})->carries);
    EXPECT_TRUE(call({"--host", "login1", "tensorboard", "--carry", "--", "last"})->carries);
}

} // namespace
} // namespace gpuq::cli
