// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/ssh_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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
    return fmt::format("{}", fmt::join(ssh_arguments(command), " "));
}

Verdict judged(int status, std::string_view errors, const SshCommand& command,
               std::string_view printed = {})
{
    return classify_ssh({status, errors, printed}, command);
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
    for (const char* text : {"", ":x", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a\nb", "a/b",
                             "%h", "@login1", "ada@", "ssh://login1", "ssh://login1:22/dir"}) {
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

TEST(SshArguments, AskOnlyAPersonAndOnlyTheFirstTime)
{
    SshCommand command = to_login();
    command.interactive = true;
    EXPECT_THAT(line(command), Not(HasSubstr("BatchMode")));
    EXPECT_THAT(line(command), Not(HasSubstr("StrictHostKeyChecking")));
    command.interactive = false;
    EXPECT_THAT(line(command), HasSubstr("-o BatchMode=yes"));
    command.interactive = true;
    command.attempt = Attempt::again;
    EXPECT_THAT(line(command), HasSubstr("-o BatchMode=yes -o StrictHostKeyChecking=yes"));
    EXPECT_THAT(line(command), testing::EndsWith(" -- login1 gpuq serve"));
    command.attempt = Attempt::asked;
    EXPECT_THAT(line(command),
                HasSubstr("-o NumberOfPasswordPrompts=1 -o StrictHostKeyChecking=yes"));
    EXPECT_THAT(line(command), Not(HasSubstr("BatchMode")));
}

TEST(SshArguments, SetWhatAConfigurationCouldBreak)
{
    SshCommand command = to_login();
    EXPECT_THAT(line(command), HasSubstr("-o PermitLocalCommand=no -o Tunnel=no"));
    EXPECT_THAT(line(command), Not(HasSubstr("SessionType"))); // an ssh without this option
    command.facts = ssh_facts_from("sessiontype none\nloglevel SILENT\nupdatehostkeys ask\n");
    EXPECT_THAT(line(command), HasSubstr("-o SessionType=default -o StdinNull=no "
                                         "-o ForkAfterAuthentication=no -v "
                                         "-o UpdateHostKeys=no -o BatchMode=yes -- "));
}

TEST(SshArguments, PassASharedConnectionAlsoOfAJumpHost)
{
    SshCommand command = to_login();
    command.ssh = {"ssh", "-F", "/a b/100%"};
    command.alone = true;
    EXPECT_THAT(line(command), HasSubstr("-o ControlPath=none -- login1"));
    command.facts.proxy_jump = "one,ada@two:2222";
    EXPECT_THAT(line(command),
                HasSubstr("-o ProxyCommand=ssh -F '/a b/100%%' -o ControlPath=none -J one "
                          "-p 2222 -W '[%h]:%p' -- ada@two -- login1"));
    command.facts.proxy_jump = "[::1]";
    EXPECT_THAT(line(command), HasSubstr("ControlPath=none -W '[%h]:%p' -- ::1 --"));
}

TEST(SshFacts, AreReadOutOfWhatSshPrints)
{
    SshFacts expected;
    expected.has_session_options = true;
    expected.without_streams = "stdinnull yes";
    expected.batch = true;
    expected.keeps_no_keys = true;
    expected.control_path = "/run/c one";
    expected.proxy_jump = "jump";
    EXPECT_EQ(ssh_facts_from("host login1\nsessiontype default\nstdinnull yes\n"
                             "forkafterauthentication no\nloglevel INFO\nbatchmode yes\n"
                             "stricthostkeychecking false\nuserknownhostsfile /dev/null none\n"
                             "controlpath /run/c one\nproxyjump jump\nnonsense\n"),
              expected);
    EXPECT_EQ(ssh_facts_from("controlpath none\nstricthostkeychecking false\n"
                             "userknownhostsfile /dev/null /root/known_hosts\nloglevel ERROR\n"),
              SshFacts());
    EXPECT_EQ(ssh_facts_from("\x1dgpuq-serve\x1d\n"), SshFacts());
    EXPECT_TRUE(ssh_facts_from("stricthostkeychecking true\n").strict);
    EXPECT_TRUE(ssh_facts_from("loglevel QUIET\n").quiet);
}

TEST(JudgeSsh, AnotherProgramInThePlaceOfGpuqIsNamed)
{
    const SshCommand first = to_login();
    for (const auto& [status, errors, printed, output] :
         {std::tuple(1, "", "This account is currently not available.\n", "not available"),
          std::tuple(1, "Password change required but no TTY available.\n", "", "no TTY"),
          std::tuple(254, "closed until noon\n", "welcome\n", "closed until noon"),
          std::tuple(0, "", "", "exit status 0"), std::tuple(3, "", "\x1b[2Jx", "^[[2Jx")}) {
        const Verdict verdict = judged(status, errors, first, printed);
        EXPECT_EQ(verdict.what, Verdict::What::stop);
        EXPECT_EQ(verdict.error.kind, Error::Kind::denied);
        EXPECT_THAT(verdict.error.text, HasSubstr(output));
    }
    SshCommand again = to_login();
    again.attempt = Attempt::again;
    EXPECT_EQ(judged(254, "closed until noon\n", again).what, Verdict::What::broken);
    EXPECT_EQ(judged(1, "gpuq: Command not found.\n", first).error.kind, Error::Kind::not_found);
    EXPECT_EQ(judged(137, "", first).what, Verdict::What::broken); // ssh itself was killed
}

TEST(JudgeSsh, AKeyThatAPersonHasRefusedIsNotCalledUnknown)
{
    SshCommand command = to_login();
    command.interactive = true;
    EXPECT_THAT(judged(255, "Host key verification failed.\n", command).error.text,
                HasSubstr("was not accepted"));
    command.facts.strict = true;
    EXPECT_THAT(judged(255, "Host key verification failed.\n", command).error.text,
                HasSubstr("StrictHostKeyChecking"));
    command.facts.batch = true;
    EXPECT_THAT(judged(255, "Host key verification failed.\n", command).error.text,
                HasSubstr("only on a terminal"));
}

TEST(JudgeSsh, WhatSshWritesForDebuggingIsNoReason)
{
    const Verdict verdict = judged(255,
                                   "OpenSSH_9.2p1\ndebug1: Permission denied (x)\n"
                                   "Authenticated to login1\nBytes per second: sent 1\n",
                                   to_login());
    EXPECT_EQ(verdict.what, Verdict::What::broken);
    EXPECT_EQ(verdict.error.text, "the connection to login1 has ended");
}

TEST(JudgeSsh, AChangedHostKeyIsAHardStop)
{
    const Verdict verdict =
        judged(255,
               "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
               "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
               "Offending ED25519 key in /home/ada/.ssh/known_hosts:3\n"
               "Host key for login1 has changed and you have requested strict checking.\n"
               "Host key verification failed.\n",
               to_login());
    EXPECT_EQ(verdict.what, Verdict::What::stop);
    EXPECT_EQ(verdict.error.kind, Error::Kind::denied);
    EXPECT_THAT(verdict.error.text, HasSubstr("the host key of login1 has changed (in "
                                              "/home/ada/.ssh/known_hosts:3)"));
    // With HostKeyAlias or another port, ssh-keygen -R login1 removes nothing.
    EXPECT_THAT(verdict.error.text, Not(HasSubstr("ssh-keygen")));
}

TEST(JudgeSsh, AnUnknownHostKeyIsAnother)
{
    const Verdict verdict =
        judged(255,
               "No ED25519 host key is known for login1 and you have requested strict "
               "checking.\nHost key verification failed.\n",
               to_login());
    EXPECT_EQ(verdict.what, Verdict::What::stop);
    EXPECT_THAT(verdict.error.text, HasSubstr("is not known on this machine"));
}

TEST(JudgeSsh, NobodyIsAskedTwiceForAPassword)
{
    const Verdict verdict = judged(
        255, "ada@login1: Permission denied (publickey,gssapi-with-mic,password).\n", to_login());
    EXPECT_EQ(verdict.what, Verdict::What::stop);
    EXPECT_EQ(verdict.error.kind, Error::Kind::denied);
    EXPECT_THAT(verdict.error.text, HasSubstr("see whether ssh login1 works"));
    EXPECT_THAT(verdict.error.text, HasSubstr("ssh can't ask without a terminal"));
    SshCommand asked = to_login();
    asked.interactive = true;
    EXPECT_THAT(
        judged(255, "ada@login1: Permission denied (publickey,password).\n", asked).error.text,
        Not(HasSubstr("without a terminal")));
}

TEST(JudgeSsh, AReconnectionThatIsRefusedNeedsTheUser)
{
    SshCommand command = to_login();
    for (const Attempt attempt : {Attempt::again, Attempt::asked}) {
        command.attempt = attempt;
        for (const char* const output :
             {"ada@login1: Permission denied (publickey,password).\n",
              "ada@login1: Permission denied (keyboard-interactive).\r\n",
              "sign_and_send_pubkey: signing failed for ED25519 \"/home/ada/.ssh/id\" from agent: "
              "agent refused operation\n"
              "ada@login1: Permission denied (publickey).\n",
              "Received disconnect from 192.0.2.1 port 22:2: Too many authentication "
              "failures\nDisconnected from 192.0.2.1 port 22\n",
              "ada@jump: Permission denied (publickey).\nConnection closed by UNKNOWN port "
              "65535\n"}) {
            const Verdict verdict = judged(255, output, command);
            EXPECT_EQ(verdict.what, Verdict::What::needs_user) << output;
            EXPECT_THAT(verdict.error.text,
                        HasSubstr("wants a password, a second factor or a key's passphrase again"));
            EXPECT_THAT(verdict.error.text, Not(HasSubstr("needless")));
        }
        EXPECT_EQ(judged(255, "Connection reset by 192.0.2.1 port 22\n", command).what,
                  Verdict::What::broken);
    }
}

TEST(JudgeSsh, TooManyWrongKeysAreARefusal)
{
    const Verdict verdict = judged(255,
                                   "Received disconnect from 192.0.2.1 port 22:2: Too many "
                                   "authentication failures\nDisconnected from 192.0.2.1 port 22\n",
                                   to_login());
    EXPECT_EQ(verdict.what, Verdict::What::stop);
    EXPECT_EQ(verdict.error.kind, Error::Kind::denied);
    EXPECT_THAT(verdict.error.text, HasSubstr("(Received disconnect from 192.0.2.1 port 22:2: Too "
                                              "many authentication failures)"));
}

TEST(JudgeSsh, WithoutGpuqThereItSaysWhatToSet)
{
    const Verdict verdict = judged(127, "bash: line 1: gpuq: command not found\n", to_login());
    EXPECT_EQ(verdict.what, Verdict::What::stop);
    EXPECT_EQ(verdict.error.kind, Error::Kind::not_found);
    EXPECT_THAT(verdict.error.text, HasSubstr("GPUQ_REMOTE"));
}

TEST(JudgeSsh, AnythingElseIsTriedAgain)
{
    for (const char* output :
         {"ssh: connect to host login1 port 22: Connection refused\n",
          "kex_exchange_identification: Connection closed by remote host\n",
          "client_loop: send disconnect: Broken pipe\n",
          "ssh: Could not resolve hostname login1: Temporary failure in name resolution\n", ""}) {
        EXPECT_EQ(judged(255, output, to_login()).what, Verdict::What::broken) << output;
    }
}

TEST(JudgeSsh, AProxyThatEndsIsQuoted)
{
    const std::string closed = "kex_exchange_identification: Connection closed by remote host\r\n"
                               "Connection closed by UNKNOWN port 65535\r\n";
    for (const std::string& message :
         {"nc: no route to login1\n" + closed,
          "nc: no route to login1\nstdio forwarding failed\n" + closed,
          std::string("nc: no route to login1\nConnection closed by UNKNOWN port 65535\r\n"),
          std::string("nc: no route to login1\nbanner exchange: Connection to UNKNOWN port 65535: "
                      "Broken pipe\r\n")}) {
        const Verdict verdict = judged(255, message, to_login());
        EXPECT_EQ(verdict.what, Verdict::What::broken);
        EXPECT_THAT(verdict.error.text, HasSubstr("(nc: no route to login1)"));
        EXPECT_THAT(verdict.error.text, Not(HasSubstr("MaxStartups")));
    }
    EXPECT_THAT(judged(255, closed, to_login()).error.text, HasSubstr("without a message"));
}

TEST(JudgeSsh, WordsOfTheFarSideAreShownOnlySanitised)
{
    const Verdict verdict = judged(255, "\x1b]0;owned\x07 go away\x1b[2J\n", to_login());
    EXPECT_THAT(verdict.error.text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(verdict.error.text, HasSubstr("go away"));
}

TEST(LastWords, AreNotWarningsOfSshsOwnConfiguration)
{
    const std::string warning =
        "/home/ada/.ssh/config line 8: Unsupported option \"gssapiauthentication\"\r\n";
    EXPECT_EQ(last_message("maintenance until noon\n" + warning), "maintenance until noon");
    EXPECT_EQ(last_message(warning), "");
}

} // namespace
} // namespace gpuq::remote
