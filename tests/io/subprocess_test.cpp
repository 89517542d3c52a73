// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/subprocess.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using Streams = Capture::Streams;

Subprocess shell(const std::string& text)
{
    return {.argv = {"/bin/sh", "-c", text}};
}

Finished result_of(const Subprocess& plan, const Capture& capture = {})
{
    auto finished = run(plan, capture);
    EXPECT_TRUE(finished);
    return finished ? *std::move(finished) : Finished{};
}

std::string output_of(const Subprocess& plan)
{
    return result_of(plan).out;
}

/// A value of this process's or another's /proc/PID/status, such as the set of ignored signals.
std::string status_line(const std::string& of, const std::string& name)
{
    std::ifstream file("/proc/" + of + "/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(name + ":")) {
            return line.substr(line.find_first_not_of("\t ", name.size() + 1));
        }
    }
    return "";
}

bool eventually(const std::function<bool()>& condition)
{
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) {
            return false;
        }
        ::poll(nullptr, 0, 5);
    }
    return true;
}

/// True if the process does not exist or is a zombie.
bool is_gone(const std::string& pid)
{
    const std::string state = status_line(pid, "State");
    return state.empty() || state.starts_with('Z');
}

TEST(Run, GivesTheStatusAndBothStreams)
{
    const Finished finished =
        result_of(shell("echo out; echo err >&2; exit 3"), {.streams = Streams::apart});
    EXPECT_EQ(finished.status, 3);
    EXPECT_EQ(finished.error, 0);
    EXPECT_EQ(finished.out, "out\n");
    EXPECT_EQ(finished.err, "err\n");
    EXPECT_EQ(output_of(shell("echo out; echo err >&2")), "out\nerr\n");
    EXPECT_EQ(result_of(shell("echo out; echo err >&2"), {.streams = Streams::output}).out,
              "out\n");
    const Finished killed = result_of(shell("kill -9 $$"));
    EXPECT_EQ(killed.status, 137);
    EXPECT_EQ(killed.signal, SIGKILL);
    const Finished exited = result_of(shell("exit 137"));
    EXPECT_EQ(exited.status, 137);
    EXPECT_EQ(exited.signal, 0);
}

TEST(Run, OfAMissingProgramGivesTheReason)
{
    const Finished missing = result_of({.argv = {"no-such-program"}});
    EXPECT_EQ(missing.status, 127);
    EXPECT_EQ(missing.error, ENOENT);
    const Finished directory = result_of({.argv = {"/"}});
    EXPECT_EQ(directory.status, 126);
    EXPECT_EQ(directory.error, EACCES);
    // The same status by the program itself is none of these.
    EXPECT_EQ(result_of(shell("exit 127")).error, 0);
}

TEST(Run, KeepsTheLastBytes)
{
    const Finished finished =
        result_of(shell("head -c 1000000 /dev/zero | tr '\\0' x; printf end"), {.most = 10});
    EXPECT_EQ(finished.out, "xxxxxxxend");
}

TEST(Run, KillsGrandchildrenAtTheLimit)
{
    Subprocess plan = shell("sleep 600 & echo $!; wait");
    plan.group = Subprocess::Group::own;
    const Finished finished = result_of(plan, {.limit = 300ms});
    EXPECT_FALSE(finished.in_time);
    EXPECT_EQ(finished.status, 137);
    const std::string grandchild = finished.out.substr(0, finished.out.find('\n'));
    ASSERT_FALSE(grandchild.empty());
    EXPECT_TRUE(eventually([&] { return is_gone(grandchild); }));
}

TEST(Run, IsLimitedAlsoAfterTheEndOfTheOutput)
{
    EXPECT_FALSE(result_of(shell("exec >&- 2>&-; exec sleep 600"), {.limit = 200ms}).in_time);
    EXPECT_FALSE(
        result_of(shell("exec sleep 600"), {.streams = Streams::none, .limit = 200ms}).in_time);
    EXPECT_EQ(result_of(shell("exit 4"), {.streams = Streams::none, .limit = 20s}).status, 4);
}

TEST(Run, EndsWhenTheOutputIsEnough)
{
    Subprocess plan = shell("echo ready; exec sleep 600");
    const Finished finished = result_of(
        plan, {.enough = [](const std::string& out, const std::string&) { return !out.empty(); }});
    EXPECT_TRUE(finished.in_time);
    EXPECT_EQ(finished.out, "ready\n");
}

TEST(Spawn, PassesTheDescriptorsOfThePlanAndNoOther)
{
    const Descriptor leaking(::open("/dev/zero", O_RDONLY)); // not close-on-exec
    const Descriptor one(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
    Subprocess plan = shell("ls /proc/$$/fd; readlink /proc/$$/fd/0 /proc/$$/fd/3");
    plan.descriptors.push_back(one.get());
    EXPECT_EQ(output_of(plan), "0\n1\n2\n3\n/dev/null\n/dev/zero\n");
}

TEST(Spawn, PassesDescriptorsInAnyOrder)
{
    Pipe a = make_pipe().value();
    Pipe b = make_pipe().value();
    const int first = a.write.get();
    const int second = b.write.get();
    // Each is to get a number that another source has.
    Subprocess plan =
        shell("echo a >&" + std::to_string(second) + "; echo b >&" + std::to_string(first));
    plan.descriptors.resize(static_cast<std::size_t>(std::max(first, second)) + 1,
                            Subprocess::k_null);
    plan.descriptors[static_cast<std::size_t>(second)] = first;
    plan.descriptors[static_cast<std::size_t>(first)] = second;
    ASSERT_LT(second, 10) << "the shell accepts no larger number";
    EXPECT_EQ(result_of(plan, {.streams = Streams::none}).status, 0);
    a.write.reset();
    b.write.reset();
    char byte = 0;
    EXPECT_EQ(::read(a.read.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'a');
    EXPECT_EQ(::read(b.read.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'b');
}

TEST(Spawn, ResetsSignals)
{
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
    auto* const pipe_action = ::signal(SIGPIPE, SIG_IGN);
    const Subprocess plan{.argv = {"grep", "^Sig[BI]", "/proc/self/status"},
                          .ignored_signals = {SIGINT}};
    EXPECT_EQ(output_of(plan), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000002\n");
    EXPECT_EQ(status_line("self", "SigBlk"), "0000000000000200"); // as before
    ::signal(SIGPIPE, pipe_action);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Spawn, SetsTheEnvironmentDirectoryMaskAndLimits)
{
    Subprocess plan = shell("echo $A $B; pwd; umask; ulimit -S -n");
    plan.environment = {"A=1", "B=2"};
    plan.work_dir = "/usr";
    plan.file_mask = 027;
    plan.limits = {{RLIMIT_NOFILE, 77}};
    EXPECT_EQ(output_of(plan), "1 2\n/usr\n0027\n77\n");
    plan.work_dir = "/no/such/directory";
    auto process = spawn(plan);
    ASSERT_TRUE(process);
    const auto failure = failure_of(*process);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->step, SpawnFailure::Step::change_directory);
    EXPECT_EQ(failure->error, ENOENT);
    EXPECT_EQ(wait_for(process->pid), 127);
}

TEST(Spawn, SearchesInTheChosenPath)
{
    std::string directory = testing::TempDir() + "gpuq-subprocess-XXXXXX";
    ASSERT_TRUE(::mkdtemp(directory.data()));
    const std::string script = directory + "/only-there";
    std::ofstream(script) << "echo found\n"; // by /bin/sh, without #!
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    Subprocess plan{.argv = {"only-there"}, .environment = {{"PATH=" + directory}}};
    EXPECT_EQ(result_of(plan).error, ENOENT);
    plan.search = Subprocess::Search::its_path;
    EXPECT_EQ(output_of(plan), "found\n");
    std::filesystem::remove_all(directory);
}

TEST(Spawn, PassesNoProgramForAnotherMachineToAShell)
{
    const std::string program = testing::TempDir() + "gpuq-elf-" + std::to_string(::getpid());
    std::ofstream(program) << "\x7f"
                              "ELF\necho executed as a script\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    std::fflush(nullptr); // _exit() of the thread sanitizer writes what the child has inherited
    const Finished finished = result_of({.argv = {program}});
    EXPECT_EQ(finished.error, ENOEXEC);
    EXPECT_EQ(finished.out, "");
    std::filesystem::remove(program);
}

TEST(Spawn, ExecutesAnotherFileThanItsName)
{
    const Subprocess plan{.argv = {"name", "-c", "echo $0"}, .executable = "/bin/sh"};
    EXPECT_EQ(output_of(plan), "name\n");
}

TEST(Spawn, PutsItInAGroupOfItsOwn)
{
    const auto group_of = [](Subprocess::Group group) {
        Subprocess plan = shell("cut -d' ' -f5,6 /proc/$$/stat; echo $$");
        plan.group = group;
        return output_of(plan);
    };
    const auto is_twice_or_more = [](const std::string& text, int times) {
        const std::string pid = text.substr(text.find('\n') + 1);
        const std::string own = pid.substr(0, pid.size() - 1);
        const std::string first = text.substr(0, text.find('\n'));
        return times == 2 ? first == own + " " + own : first.starts_with(own + " ") && times == 1;
    };
    EXPECT_TRUE(is_twice_or_more(group_of(Subprocess::Group::session), 2));
    EXPECT_TRUE(is_twice_or_more(group_of(Subprocess::Group::own), 1));
    EXPECT_TRUE(
        group_of(Subprocess::Group::same)
            .starts_with(std::to_string(::getpgrp()) + " " + std::to_string(::getsid(0)) + "\n"));
}

TEST(Spawn, EndsTheChildWithItsParent)
{
    Pipe pipe = make_pipe().value();
    // This process has one thread: gtest starts none.
    const pid_t parent = ::fork();
    if (parent == 0) {
        Subprocess plan = shell("echo $$; exec sleep 600");
        plan.descriptors[STDOUT_FILENO] = pipe.write.get();
        plan.death_signal = SIGKILL;
        (void)spawn(plan);
        ::pause();
    }
    pipe.write.reset();
    char bytes[32] = "";
    ASSERT_GT(::read(pipe.read.get(), bytes, sizeof bytes - 1), 0);
    const std::string child = std::to_string(std::atoi(bytes));
    EXPECT_FALSE(is_gone(child));
    kill_and_reap(parent);
    EXPECT_TRUE(eventually([&] { return is_gone(child); }));
}

TEST(Spawn, DoesNotWaitForTheProgram)
{
    const auto process = spawn(shell("exec sleep 600"));
    ASSERT_TRUE(process);
    EXPECT_FALSE(exit_code_if_ended(process->pid));
    kill_and_reap(process->pid);
    EXPECT_EQ(::waitpid(process->pid, nullptr, WNOHANG), -1);
}

/// The process id that a process left unattended has written to a file, once it is complete.
pid_t pid_in(const std::string& path)
{
    pid_t pid = 0;
    EXPECT_TRUE(eventually([&] { return (std::ifstream(path) >> pid) && pid > 0; }));
    return pid;
}

TEST(SpawnUnattended, LeavesNoChildAndHoldsNothing)
{
    const std::string file = testing::TempDir() + "gpuq-unattended-" + std::to_string(::getpid());
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    ASSERT_TRUE(spawn_unattended(shell("echo $$ >" + file + "; exec sleep 60"), 60s));
    const pid_t pid = pid_in(file);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "nothing to reap";
    EXPECT_EQ(::getsid(pid), pid);
    pipe->write.reset();
    char byte = 0;
    EXPECT_TRUE(eventually([&] {
        pollfd end{pipe->read.get(), POLLIN, 0};
        return ::poll(&end, 1, 0) == 1;
    })) << "no process holds the other end";
    EXPECT_EQ(::read(pipe->read.get(), &byte, 1), 0);
    ::kill(pid, SIGKILL);
    EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; })) << "reaped by its own parent";
    std::filesystem::remove(file);
}

TEST(SpawnUnattended, KillsTheWholeGroupAtTheLimit)
{
    const std::string file = testing::TempDir() + "gpuq-unattended-" + std::to_string(::getpid());
    ASSERT_TRUE(spawn_unattended(shell("sleep 60 & echo $! >" + file + "; wait"), 300ms));
    const pid_t grandchild = pid_in(file);
    EXPECT_TRUE(eventually([&] {
        return ::kill(grandchild, 0) != 0 ||
               status_line(std::to_string(grandchild), "State").starts_with("Z");
    }));
    std::filesystem::remove(file);
}

TEST(SpawnUnattended, DoesNotReportAMissingProgram)
{
    EXPECT_TRUE(spawn_unattended({.argv = {"/no/such/program"}}, 1s));
}

TEST(FileInMemory, IsReadFromItsBeginning)
{
    const std::string text(300'000, 'x');
    const auto file = file_in_memory(text);
    ASSERT_TRUE(file);
    Subprocess plan{.argv = {"cat"}};
    plan.descriptors[STDIN_FILENO] = file->get();
    EXPECT_EQ(output_of(plan), text);
}

} // namespace
} // namespace gpuq
