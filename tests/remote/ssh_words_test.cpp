// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/ssh_words.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::remote {
namespace {

using testing::HasSubstr;
using testing::Not;

SshCommand to_login()
{
    SshCommand command;
    command.host = "login1";
    return command;
}

std::string line(const SshCommand& command)
{
    return fmt::format("{}", fmt::join(ssh_words(command), " "));
}

TEST(Place, IsAHostAndPerhapsAFolder)
{
    EXPECT_EQ(*place_from("login1"), (Place{"login1", ""}));
    EXPECT_EQ(*place_from("ada@login.example.org:~/work"),
              (Place{"ada@login.example.org", "~/work"}));
    EXPECT_EQ(*place_from("login1:/scratch/a:b"), (Place{"login1", "/scratch/a:b"}));
}

TEST(Place, NothingThatSshOrAShellCouldTakeForMore)
{
    for (const char* text :
         {"", ":x", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a\nb", "a/b", "%h"}) {
        EXPECT_FALSE(place_from(text)) << text;
    }
}

TEST(Program, IsAPathAndNothingElse)
{
    EXPECT_TRUE(check_program("gpuq"));
    EXPECT_TRUE(check_program("~/opt/gpuq-0.1/bin/gpuq"));
    for (const char* text : {"", "-x", "a b", "a;b", "$HOME/gpuq", "`x`", "a'b"}) {
        EXPECT_FALSE(check_program(text)) << text;
    }
}

TEST(SshWords, AskOnlyAPersonAndOnlyTheFirstTime)
{
    SshCommand command = to_login();
    command.person = true;
    EXPECT_THAT(line(command), Not(HasSubstr("BatchMode")));
    EXPECT_THAT(line(command), Not(HasSubstr("StrictHostKeyChecking")));
    command.person = false;
    EXPECT_THAT(line(command), HasSubstr("-o BatchMode=yes"));
    command.person = true;
    command.attempt = Attempt::again;
    EXPECT_THAT(line(command), HasSubstr("-o BatchMode=yes -o StrictHostKeyChecking=yes"));
    EXPECT_THAT(line(command), testing::EndsWith(" -- login1 gpuq serve"));
}

TEST(JudgeSsh, AChangedHostKeyIsAHardStop)
{
    const Verdict verdict =
        judge_ssh(255,
                  "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
                  "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
                  "Offending ED25519 key in /home/ada/.ssh/known_hosts:3\n"
                  "Host key for login1 has changed and you have requested strict checking.\n"
                  "Host key verification failed.\n",
                  to_login());
    EXPECT_EQ(verdict.what, Verdict::What::stop);
    EXPECT_EQ(verdict.error.kind, Error::Kind::denied);
    EXPECT_THAT(verdict.error.text, HasSubstr("the host key of login1 has changed (it stands in "
                                              "/home/ada/.ssh/known_hosts:3)"));
    // With HostKeyAlias or another port, ssh-keygen -R login1 removes nothing.
    EXPECT_THAT(verdict.error.text, Not(HasSubstr("ssh-keygen")));
}

TEST(JudgeSsh, AnUnknownHostKeyIsAnother)
{
    const Verdict verdict =
        judge_ssh(255,
                  "No ED25519 host key is known for login1 and you have requested strict "
                  "checking.\nHost key verification failed.\n",
                  to_login());
    EXPECT_EQ(verdict.what, Verdict::What::stop);
    EXPECT_THAT(verdict.error.text, HasSubstr("is not known here"));
}

TEST(JudgeSsh, NobodyIsAskedTwiceForAPassword)
{
    const Verdict verdict = judge_ssh(
        255, "ada@login1: Permission denied (publickey,gssapi-with-mic,password).\n", to_login());
    EXPECT_EQ(verdict.what, Verdict::What::stop);
    EXPECT_EQ(verdict.error.kind, Error::Kind::denied);
    EXPECT_THAT(verdict.error.text, HasSubstr("see whether ssh login1 works"));
    EXPECT_THAT(verdict.error.text, HasSubstr("without a terminal ssh asks nobody"));
    SshCommand asked = to_login();
    asked.person = true;
    EXPECT_THAT(
        judge_ssh(255, "ada@login1: Permission denied (publickey,password).\n", asked).error.text,
        Not(HasSubstr("without a terminal")));
    SshCommand again = to_login();
    again.attempt = Attempt::again;
    const Verdict later =
        judge_ssh(255, "ada@login1: Permission denied (publickey,password).\n", again);
    EXPECT_EQ(later.what, Verdict::What::stop);
    EXPECT_THAT(later.error.text, HasSubstr("wants a password or a key's passphrase again"));
}

TEST(JudgeSsh, WithoutGpuqThereItSaysWhatToSet)
{
    const Verdict verdict = judge_ssh(127, "bash: line 1: gpuq: command not found\n", to_login());
    EXPECT_EQ(verdict.what, Verdict::What::stop);
    EXPECT_EQ(verdict.error.kind, Error::Kind::not_found);
    EXPECT_THAT(verdict.error.text, HasSubstr("GPUQ_REMOTE"));
}

TEST(JudgeSsh, AnythingElseIsTriedAgain)
{
    for (const char* words :
         {"ssh: connect to host login1 port 22: Connection refused\n",
          "kex_exchange_identification: Connection closed by remote host\n",
          "client_loop: send disconnect: Broken pipe\n",
          "ssh: Could not resolve hostname login1: Temporary failure in name resolution\n", ""}) {
        EXPECT_EQ(judge_ssh(255, words, to_login()).what, Verdict::What::broken) << words;
    }
}

TEST(JudgeSsh, WordsOfTheFarSideAreShownOnlySanitised)
{
    const Verdict verdict = judge_ssh(255, "\x1b]0;owned\x07 go away\x1b[2J\n", to_login());
    EXPECT_THAT(verdict.error.text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(verdict.error.text, HasSubstr("go away"));
}

} // namespace
} // namespace gpuq::remote
