// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stage.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

/// On a busy machine, a reading client may be delayed for this long.
constexpr std::chrono::seconds k_busy_machine{10};

/// A small tmpfs on the state directory; the test is skipped if mounting is not permitted.
class Mounted {
public:
    Mounted(const Stage& stage, const char* options)
        : m_at(stage.options.state_dir)
    {
        m_mounted = ::mount("gpuq-test", m_at.c_str(), "tmpfs", 0, options) == 0;
        if (m_mounted) {
            std::filesystem::create_directories(stage.state(layout::inbox(stage.run.key)));
        }
    }
    ~Mounted()
    {
        if (m_mounted) {
            ::umount2(m_at.c_str(), MNT_DETACH);
        }
    }
    bool remount(unsigned long flags, const char* options)
    {
        return ::mount("gpuq-test", m_at.c_str(), "tmpfs", MS_REMOUNT | flags, options) == 0;
    }
    explicit operator bool() const { return m_mounted; }

private:
    std::string m_at;
    bool m_mounted = false;
};

#define MOUNT_OR_SKIP(name, stage, options)                                                        \
    Mounted name(stage, options);                                                                  \
    if (!name) {                                                                                   \
        GTEST_SKIP() << "mounting needs root";                                                     \
    }

TEST(FullDisk, TheRunGoesOnAndTheJournalSaysWhatIsLost)
{
    Stage stage = Stage::shell("head -c 3000000 /dev/zero; echo err >&2; exit 9");
    stage.options.patience.stalled = k_busy_machine;
    MOUNT_OR_SKIP(mounted, stage, "mode=0700,size=1m");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(client.out.size(), 3'000'000U) << "a client that reads gets all";
    EXPECT_EQ(client.err, "err\n");
    EXPECT_EQ(stage.wait(), 9);
    ASSERT_EQ(client.notes.size(), 1U);
    EXPECT_NE(client.notes[0].find("No space left on device"), std::string::npos);

    std::uint64_t out_lost = 0;
    for (const Event& event : stage.events()) {
        if (event.kind == Event::Kind::log_lost && event.stream == Stream::out) {
            EXPECT_EQ(*event.from, std::filesystem::file_size(stage.link_file("out.log")));
            EXPECT_EQ(*event.to, 3'000'000U);
            out_lost = *event.to - *event.from;
        }
    }
    EXPECT_GT(out_lost, 1'900'000U);
    EXPECT_EQ(stage.awaited(Event::Kind::ended).status, 9);
}

TEST(FullDisk, ThatGetsRoomAgainLeavesAHoleAndTrueOffsets)
{
    Stage stage = Stage::shell("head -c 2000000 /dev/zero | tr '\\0' x; read line; echo tail");
    stage.run.request.input = Input::terminal;
    stage.options.patience.log_retry = 50ms;
    stage.options.patience.stalled = k_busy_machine;
    MOUNT_OR_SKIP(mounted, stage, "mode=0700,size=1m");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until(
        [&] { return client.out.size() == 2'000'000 && !client.notes.empty(); }));
    ASSERT_TRUE(mounted.remount(0, "size=16m"));
    ::poll(nullptr, 0, 100);
    client.send(wire::Stdin{0, "\n"});
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(stage.wait(), 0);
    const auto lost = stage.event(Event::Kind::log_lost);
    ASSERT_TRUE(lost);
    EXPECT_LE(lost->to, 2'000'000U) << "what came after the disk had room again is there";
    const std::string log = contents(stage.link_file("out.log"));
    EXPECT_EQ(log.size(), 2'000'005U);
    EXPECT_EQ(log.substr(2'000'000), "tail\n");
    EXPECT_EQ(log.substr(*lost->from, *lost->to - *lost->from),
              std::string(*lost->to - *lost->from, '\0'));
    EXPECT_EQ(log.substr(*lost->to, 2'000'000 - *lost->to),
              std::string(2'000'000 - *lost->to, 'x'));
    EXPECT_EQ(log.substr(0, *lost->from), std::string(*lost->from, 'x'));
    EXPECT_FALSE(std::filesystem::exists(stage.link_file("reserve")));
}

TEST(FullDisk, AClientThatComesLateSeesTheGapByOffset)
{
    // More than the supervisor keeps in memory if it cannot write.
    Stage stage = Stage::shell("head -c 40000000 /dev/zero; read line");
    stage.run.request.input = Input::terminal;
    stage.options.patience.stalled = k_busy_machine;
    MOUNT_OR_SKIP(mounted, stage, "mode=0700,size=1m");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out.size() == 40'000'000; }));
    Client late = stage.attach();
    ASSERT_TRUE(late.reads_until([&] { return late.out_at == 40'000'000; }));
    EXPECT_LT(late.out.size(), 40'000'000U);
    EXPECT_FALSE(late.overlapped);
    client.send(wire::Stdin{0, "\n"});
    EXPECT_TRUE(late.reads_to_the_end());
}

TEST(ReadOnlyDisk, StreamsToTheClientAllTheSame)
{
    Stage stage = Stage::shell("head -c 9000000 /dev/zero; exit 4");
    stage.options.patience.stalled = k_busy_machine;
    MOUNT_OR_SKIP(mounted, stage, "mode=0700,size=1m");
    put(stage.state(layout::run_json(stage.run.key)), to_json(stage.run));
    ASSERT_TRUE(mounted.remount(MS_RDONLY, ""));
    Client client = stage.begin_as_it_is();
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(client.out.size(), 9'000'000U);
    EXPECT_EQ(client.notes.size(), 1U);
    EXPECT_EQ(stage.wait(), 4);
}

TEST(ReadOnlyDisk, AClientThatStopsReadingDoesNotHoldTheProgram)
{
    Stage stage = Stage::shell("head -c 9000000 /dev/zero; echo done >../done");
    MOUNT_OR_SKIP(mounted, stage, "mode=0700,size=1m");
    stage.run.request.work_dir = stage.options.state_dir;
    put(stage.state(layout::run_json(stage.run.key)), to_json(stage.run));
    ASSERT_TRUE(mounted.remount(MS_RDONLY, ""));
    stage.options.patience.stalled = 300ms;
    Client client = stage.begin_as_it_is();
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(stage.root() / "done"); }));
    EXPECT_EQ(stage.wait(), 0);
}

/// Stops the threads of a supervisor that write, as a hanging disk does. The test is skipped if
/// tracing is not permitted.
class HangingDisk {
public:
    explicit HangingDisk(pid_t supervisor)
    {
        Pipe stopped = make_pipe().value();
        m_tracer = ::fork();
        if (m_tracer == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)!::write(stopped.write.get(), stop_threads(supervisor) ? "y" : "n", 1);
            while (::waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) {
            }
            ::_exit(0);
        }
        char answer = 0;
        m_hangs = ::read(stopped.read.get(), &answer, 1) == 1 && answer == 'y';
    }
    HangingDisk(HangingDisk&&) = delete;
    ~HangingDisk()
    {
        ::kill(m_tracer, SIGKILL);
        ::waitpid(m_tracer, nullptr, 0);
    }
    explicit operator bool() const { return m_hangs; }

private:
    static bool stop_threads(pid_t process)
    {
        int stopped = 0;
        for (const auto& entry :
             std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
            const pid_t thread = std::stoi(entry.path().filename());
            if (thread == process) {
                continue;
            }
            if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0 ||
                ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 ||
                ::waitpid(thread, nullptr, __WALL) != thread) {
                return false;
            }
            ++stopped;
        }
        return stopped > 0;
    }
    pid_t m_tracer = -1;
    bool m_hangs = false;
};

TEST(HangingDisk, WithAFullBacklogDoesNotOutliveTheProgramForLong)
{
    Stage stage = Stage::shell("echo ready; read line; head -c 9000000 /dev/zero & "
                               "read line; exit 9");
    stage.run.request.input = Input::terminal;
    stage.options.patience.disk = 500ms;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    const HangingDisk disk(stage.supervisor());
    if (!disk) {
        GTEST_SKIP() << "tracing is not permitted";
    }
    client.send(wire::Stdin{0, "\n"});
    ASSERT_TRUE(client.reads_until([&] { return client.out.size() > 4'000'000; }));
    client.send(wire::Stdin{1, "\n"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 9);
    EXPECT_EQ(client.ended->out, client.out.size());
    client.close_all();
    EXPECT_EQ(stage.wait(), 9);
}

TEST(Output, HeldByAProcessElsewhereThatPrintsDoesNotDelayTheEndForLong)
{
    Stage stage = Stage::shell("echo ready; read line; exit 9");
    stage.run.request.input = Input::terminal;
    stage.options.patience.disk = 500ms;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "ready\n"; }));
    const std::string output = "/proc/" + std::to_string(client.started->pid) + "/fd/1";
    const Descriptor elsewhere(::open(output.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(elsewhere);
    client.send(wire::Stdin{0, "\n"});
    ASSERT_TRUE(client.reads_until([&] {
        (void)!::write(elsewhere.get(), "x", 1);
        return client.ended.has_value();
    }));
    client.close_all();
    EXPECT_EQ(stage.wait(), 9);
    EXPECT_EQ(client.ended->out, client.out.size());
}

TEST(RemovedFolder, IsSurvived)
{
    Stage stage = Stage::shell("echo one; read line; echo two; exit 8");
    stage.run.request.input = Input::terminal;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "one\n"; }));
    std::filesystem::remove_all(stage.options.state_dir);
    client.send(wire::Stdin{0, "\n"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "one\ntwo\n");
    EXPECT_EQ(client.ended->ending.status, 8);
}

TEST(Heartbeat, SaysWhoIsAliveAndHowFar)
{
    Stage stage = Stage::shell("printf 12345; read line");
    stage.run.request.input = Input::terminal;
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out == "12345"; }));
    ASSERT_TRUE(eventually([&] { return contents(stage.link_file("heartbeat")).size() == 80; }));
    const std::string beat = contents(stage.link_file("heartbeat"));
    EXPECT_NE(beat.find(" 42 " + std::to_string(stage.supervisor()) + " "), std::string::npos);
    client.send(wire::Stop{"test"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_NE(contents(stage.link_file("heartbeat")).find(" 5 0 "), std::string::npos);
}

TEST(Links, BelowTheStateFolderAreNotFollowed)
{
    Stage stage = Stage::shell("true");
    put(stage.state(layout::run_json(stage.run.key)), to_json(stage.run));
    std::filesystem::rename(stage.state("runs"), stage.state("elsewhere"));
    std::filesystem::create_symlink("elsewhere", stage.state("runs"));
    Client client = stage.begin_as_it_is();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 125);
}

} // namespace
} // namespace gpuq::supervisor
