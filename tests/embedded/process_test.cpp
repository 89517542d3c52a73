// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/process.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RunCommand, GivesStatusAndBothStreams)
{
    const auto done = run_command({{"/bin/sh", "-c", "echo out; echo $X >&2; exit 3"}, {"X=err"}},
                                  in(seconds(10)));
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_EQ(done->status, 3);
    EXPECT_EQ(done->output, "out\nerr\n");
}

TEST(RunCommand, TellsSignalsAndMissingPrograms)
{
    EXPECT_EQ(run_command({{"/bin/sh", "-c", "kill -9 $$"}, {}}, in(seconds(10)))->status, 137);
    EXPECT_EQ(run_command({{"/nosuch"}, {}}, in(seconds(10)))->status, 127);
}

TEST(RunCommand, GivesUpAtItsDeadlineAndLeavesNothing)
{
    const auto done =
        run_command({{"/bin/sh", "-c", "echo $$; sleep 600"}, {}}, in(milliseconds(300)));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, Error::Kind::unreachable);
}

TEST(Daemon, IsKnownUntilItEnds)
{
    const std::string log = testing::TempDir() + "/daemon.log";
    unlink(log.c_str());
    const auto started = start_daemon({{"/bin/sh", "-c", "echo hello; exec sleep 600"}, {}}, log);
    ASSERT_TRUE(started) << started.error().text;
    EXPECT_TRUE(is_alive(*started));
    // The same pid with another start time is another process.
    EXPECT_FALSE(is_alive({started->pid, started->start_time + 1}));
    EXPECT_TRUE(end_processes({*started}, SIGKILL, in(seconds(10))));
    EXPECT_FALSE(is_alive(*started)); // still a zombie child of the test
    waitpid(started->pid, nullptr, 0);
    EXPECT_FALSE(identify(started->pid));
}

TEST(Daemon, ThatCannotBeExecutedIsReportedWithTheReason)
{
    const std::string log = testing::TempDir() + "/daemon.log";
    const auto started = start_daemon({{"/etc/passwd"}, {}}, log);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().text, "can not start /etc/passwd: Permission denied");
}

TEST(Daemon, IsFoundByItsEnvironment)
{
    const auto started =
        start_daemon({{"/bin/sleep", "600"}, {"GPUQ_TEST=one two"}}, testing::TempDir() + "/d.log");
    ASSERT_TRUE(started) << started.error().text;
    const auto exists = [&] {
        for (const ProcessFacts& process : all_processes()) {
            if (process.id == *started && process.command == "sleep") {
                return process.parent == getpid() &&
                       process.environment == std::vector<std::string>{"GPUQ_TEST=one two"};
            }
        }
        return false;
    };
    EXPECT_TRUE(wait_for(exists, in(seconds(10))));
    EXPECT_TRUE(end_processes({*started}, SIGKILL, in(seconds(10))));
    waitpid(started->pid, nullptr, 0);
}

TEST(ContentOf, AFileThatEndsWhileItIsReadIsEmptyNotAnException)
{
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        _exit(0);
    }
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
    // A zombie's environ can be opened but not read; after waitpid it is gone.
    EXPECT_EQ(content_of("/proc/" + std::to_string(child) + "/environ"), "");
    waitpid(child, nullptr, 0);
    EXPECT_EQ(content_of("/proc/" + std::to_string(child) + "/environ"), "");
    EXPECT_EQ(content_of("/proc"), ""); // can be opened, but not read
}

TEST(FindProgram, LooksInThePathAndThenInTheSystemsFolders)
{
    EXPECT_EQ(find_program("sh", "/nosuch:/bin"), "/bin/sh");
    EXPECT_TRUE(find_program("sh", nullptr));
    EXPECT_FALSE(find_program("no-such-program", "/bin"));
    EXPECT_FALSE(
        find_program("passwd", "etc:./etc:")->starts_with("etc")); // never a relative directory
}

} // namespace
} // namespace gpuq::embedded
