// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/client/log_copy.h"
#include "cli/fake_services.h"
#include "ports/job.h"
#include "runs/records/journal.h"
#include "runs/run_on_disk.h"
#include "telemetry/crc32c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::HasSubstr;

/// A store that runs a callback at chosen polls of the log's size; each poll advances the clock.
class LivingStore : public fakes::MemoryStore {
public:
    fakes::FakeClock* clock = nullptr;
    std::map<int, std::function<void()>> at_query; ///< key: number of the poll, from 1

    Result<std::uint64_t> size(const std::string& path) override
    {
        if (path.ends_with("out.log")) {
            clock->advance(1s);
            if (const auto happens = at_query.find(++m_activities); happens != at_query.end()) {
                happens->second();
            }
        }
        return MemoryStore::size(path);
    }

private:
    int m_activities = 0;
};

class Logs : public testing::Test {
protected:
    FakeServices m_services;
    LivingStore m_store;

    Logs()
    {
        m_services.directory = &m_store;
        m_store.clock = &m_services.time;
    }

    Time now() { return m_services.time.now(); }

    RunOnDisk run() { return RunOnDisk(m_store, fakes::some_run(now() - 5min, "train")); }

    void print(const RunOnDisk& run, Stream stream, const std::string& bytes)
    {
        m_store.append(layout::log(run.key(), LinkNumber{1}, stream), bytes);
    }

    Use logs(const std::vector<std::string>& arguments)
    {
        return use(k_logs_verb, m_services, arguments);
    }
};

TEST_F(Logs, PrintsEachStreamUnchanged)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    const std::string bytes("a\0\xff\x1b[31m", 8);
    print(one, Stream::out, bytes);
    print(one, Stream::err, "warning\n");
    m_store.append(layout::order(one.key(), LinkNumber{1}), "o 8\n");
    one.ended({3, Cause::finished, "", now()});
    const Use used = logs({"train"});
    EXPECT_EQ(used.status, 0);
    EXPECT_EQ(used.out, bytes);
    EXPECT_EQ(used.err, "warning\n");
    EXPECT_EQ(m_services.slurm_opened, 0);
}

TEST_F(Logs, IsPrintableOnRequest)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    print(one, Stream::out, "\x1b]0;pwned\a\n\x1b[31mred");
    print(one, Stream::err, "\x1b[2J");
    one.ended({0, Cause::finished, "", now()});
    const Use used = logs({"--printable", "train"});
    EXPECT_EQ(used.out, "^[]0;pwned^G\n\x1b[31mred\n\x1b[0m");
    EXPECT_EQ(used.err, "^[[2J\n");
    EXPECT_EQ(logs({"--printable", "--after", "0:0:0", "train"}).status, 2);
}

TEST_F(Logs, LeavesOutWhatWasShownElsewhereOfEachStream)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    print(one, Stream::out, "first\nsecond\n");
    print(one, Stream::err, "warning\n");
    one.ended({3, Cause::finished, "", now()});
    const Use used = logs({"--shown", "8,7", "train"});
    EXPECT_EQ(used.out, "cond\n");
    EXPECT_EQ(used.err, "\n");
    for (const char* const wrong : {"8", "8,", "8,7,", ",7", "x,7", ""}) {
        EXPECT_EQ(logs({"--shown", wrong, "train"}).status, 2) << wrong;
    }
}

TEST_F(Logs, PrintsWhatIsThereOfALivingRun)
{
    const RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    print(one, Stream::out, "half a li");
    const Use used = logs({"last"});
    EXPECT_EQ(used.status, 0);
    EXPECT_EQ(used.out, "half a li");
    EXPECT_EQ(used.err, "");
}

TEST_F(Logs, SaysThatThereIsNoOutputYet)
{
    run().submitted(JobId{7});
    EXPECT_EQ(logs({"7"}).err, "gpuq: no output yet\n");
    EXPECT_EQ(m_services.slurm_opened, 0);
}

TEST_F(Logs, SaysHowMuchIsNotInTheLog)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    print(one, Stream::out, "ab" + std::string(5, '\0') + "c\n");
    Event lost;
    lost.kind = Event::Kind::log_lost;
    lost.at = now();
    lost.stream = Stream::out;
    lost.from = 2;
    lost.to = 7;
    one.event(lost).ended({0, Cause::finished, "", now()});
    const Use used = logs({"7"});
    EXPECT_EQ(used.out, "abc\n");
    EXPECT_EQ(used.err, "gpuq: 5 bytes of stdout are not in the log\n");
}

TEST_F(Logs, FollowsARunToItsEndAndTakesItsStatus)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    print(one, Stream::out, "one\n");
    m_store.at_query[2] = [&] { print(one, Stream::out, "two\n"); };
    m_store.at_query[3] = [&] {
        print(one, Stream::out, "three\n");
        one.ended({85, Cause::finished, "", now()});
    };
    const Use used = logs({"-f", "train"});
    EXPECT_EQ(used.status, 85);
    EXPECT_EQ(used.out, "one\ntwo\nthree\n");
    EXPECT_EQ(used.err, "gpuq: run 7 (train) ended with status 85\n");
    EXPECT_EQ(m_services.slurm_opened, 0);
}

TEST_F(Logs, SaysOnceThatARunWaits)
{
    RunOnDisk one = run().submitted(JobId{7});
    Job job;
    job.id = JobId{7};
    job.state = JobState::pending;
    job.reason = "Priority";
    m_services.slurm.jobs = {job};
    m_store.at_query[4] = [&] {
        one.started(JobId{7}, now());
        print(one, Stream::out, "hello\n");
        one.ended({0, Cause::finished, "", now()});
    };
    const Use used = logs({"-f", "train"});
    EXPECT_EQ(used.status, 0);
    EXPECT_EQ(used.out, "hello\n");
    EXPECT_EQ(used.err, "gpuq: run 7 (train) waits: others are before you\n");
    EXPECT_THAT(m_services.slurm.requests, testing::ElementsAre("own_jobs"));
}

TEST_F(Logs, LearnsFromSlurmThatADeadRunHasEnded)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    print(one, Stream::out, "last words\n");
    Job job;
    job.id = JobId{7};
    job.state = JobState::node_fail;
    m_services.slurm.jobs = {job};
    m_store.at_query[2] = [&] { m_services.time.advance(1min); };
    const Use used = logs({"-f", "train"});
    EXPECT_EQ(used.status, 119);
    EXPECT_EQ(used.out, "last words\n");
    EXPECT_EQ(used.err, "gpuq: run 7 (train) was lost: its node failed\n");
}

TEST_F(Logs, GoesOnWithTheDiskWhenSlurmIsSilent)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now() - 1min);
    m_services.slurm.silent = true;
    m_store.at_query[2] = [&] { print(one, Stream::out, "still here\n"); };
    m_store.at_query[3] = [&] { one.ended({0, Cause::finished, "", now()}); };
    const Use used = logs({"-f", "train"});
    EXPECT_EQ(used.status, 0);
    EXPECT_EQ(used.out, "still here\n");
    EXPECT_EQ(used.err, "gpuq: Slurm does not answer; following the log on disk\n");
}

class LogsTo : public Logs {
protected:
    std::filesystem::path m_dir;

    void SetUp() override
    {
        std::string name = std::filesystem::temp_directory_path() / "gpuq-logs-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        m_dir = name;
    }
    void TearDown() override { std::filesystem::remove_all(m_dir); }

    std::string file() const { return m_dir / "copy"; }
    std::string content() const
    {
        std::ifstream stream(file(), std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    void content(const std::string& bytes) const
    {
        std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes;
    }

    void second_ends(const RunOnDisk& one)
    {
        Event event;
        event.kind = Event::Kind::ended;
        event.at = now();
        event.status = 0;
        event.cause = Cause::finished;
        m_store.append(layout::journal(one.key(), LinkNumber{2}), to_line(event));
    }

    /// Writes to both streams alternately over two links. Returns the output that a reader must
    /// get.
    std::string two_links(RunOnDisk& one)
    {
        std::string all;
        std::mt19937 random(7);
        for (const int link : {1, 2}) {
            for (int i = 0; i < 200; ++i) {
                const Stream stream = i % 2 == 0 ? Stream::out : Stream::err;
                std::string bytes(random() % 2000 + 1, ' ');
                std::generate(bytes.begin(), bytes.end(), [&] { return char(random() % 255 + 1); });
                m_store.append(layout::log(one.key(), LinkNumber{link}, stream), bytes);
                m_store.append(layout::order(one.key(), LinkNumber{link}),
                               (stream == Stream::out ? "o " : "e ") +
                                   std::to_string(bytes.size()) + "\n");
                all += bytes;
            }
        }
        return all;
    }
};

TEST_F(LogsTo, GoesOnAfterAnyByte)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    const std::string all = two_links(one);
    second_ends(one);
    std::mt19937 random(11);
    for (int i = 0; i < 30; ++i) {
        const std::size_t had = i == 0   ? 0
                                : i == 1 ? all.size()
                                : i == 2 ? all.size() - 1
                                         : random() % all.size();
        content(all.substr(0, had));
        const Use used =
            i % 2 == 0 ? logs({"-f", "--to", file(), "train"}) : logs({"--to", file(), "train"});
        ASSERT_EQ(used.status, 0) << used.err;
        ASSERT_EQ(used.out, "");
        ASSERT_TRUE(content() == all) << had;

        LogMark mark{had, std::min<std::uint64_t>(had, 64 << 10), 0};
        mark.crc =
            telemetry::crc32c(std::string_view(all).substr(had - mark.checked, mark.checked));
        ASSERT_TRUE(logs({"--after", to_text(mark), "train"}).out == all.substr(had)) << had;
    }
    EXPECT_EQ(logs({"--to", file(), "train"}).err,
              "gpuq: " + file() + " holds " + std::to_string(all.size()) + " bytes of the log\n");
}

TEST_F(LogsTo, LeavesAFileThatHoldsSomethingElse)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    const std::string all = two_links(one);
    std::string wrong = all.substr(0, 200'000);
    wrong[199'000] ^= 1;
    for (const std::string& bytes : {wrong, all + "x", std::string("my thesis\n")}) {
        for (const bool ended : {false, true}) {
            content(bytes);
            if (ended) {
                second_ends(one);
            }
            const Use used = logs({"--to", file(), "train"});
            EXPECT_EQ(used.status, 2);
            EXPECT_THAT(used.err, HasSubstr("the file holds " + std::to_string(bytes.size()) +
                                            " bytes that are not the beginning of the log"));
            EXPECT_TRUE(content() == bytes);
        }
    }
}

TEST_F(LogsTo, FollowsWhatGrows)
{
    RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    print(one, Stream::out, "one\n");
    m_store.at_query[2] = [&] { print(one, Stream::out, "two\n"); };
    m_store.at_query[3] = [&] { one.ended({3, Cause::finished, "", now()}); };
    const Use used = logs({"-f", "--to", file(), "train"});
    EXPECT_EQ(used.status, 3);
    EXPECT_EQ(content(), "one\ntwo\n");
}

TEST_F(LogsTo, IsAloneWithItsFile)
{
    run().submitted(JobId{7}).started(JobId{7}, now());
    const auto held = LogCopy::at(file());
    ASSERT_TRUE(held);
    const Use used = logs({"--to", file(), "train"});
    EXPECT_EQ(used.err, file() + " is being written by another gpuq");
    EXPECT_NE(used.status, 0);
}

TEST_F(LogsTo, RefusesWhatIsNoFileAndNoMark)
{
    run().submitted(JobId{7}).started(JobId{7}, now());
    EXPECT_EQ(logs({"--to", m_dir, "train"}).status, 2);
    EXPECT_THAT(logs({"--to", m_dir / "no" / "such", "train"}).err, HasSubstr("No such file"));
    ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
    EXPECT_EQ(logs({"--to", file(), "train"}).status, 2);
    for (const char* mark : {"", "1", "1:1", "1:1:", "1:1:xyz", "1:2:0", "-1:0:0", "70000:70000:0",
                             "99999999999999999999:0:0", "1:1:0 "}) {
        EXPECT_EQ(logs({"--after", mark, "train"}).status, 2) << mark;
    }
    EXPECT_EQ(logs({"--after", "0:0:0", "--to", "x", "train"}).status, 2);
}

TEST_F(Logs, NeedsExactlyOneRun)
{
    EXPECT_EQ(logs({}).status, 2);
    EXPECT_EQ(logs({"a", "b"}).status, 2);
    EXPECT_EQ(logs({"nosuch"}).status, 2);
    EXPECT_THAT(logs({"nosuch"}).err, HasSubstr("no run 'nosuch'"));
}

/// Runs `logs WORDS` in a child with a pipe as stdout. Returns its wait status. `meanwhile` gets
/// the child and the read end of the pipe, which it must close.
int in_child(Services& services, const std::vector<std::string>& arguments,
             const std::function<void(pid_t, int)>& meanwhile)
{
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        ::dup2(ends[1], STDOUT_FILENO);
        auto parsed = parse_options(k_logs_verb.options, k_logs_verb.order, arguments);
        Invocation invocation{services, {}, parsed->operands, parsed->options};
        const auto status = k_logs_verb.run(invocation);
        ::_exit(status ? *status : 99);
    }
    ::close(ends[1]);
    meanwhile(child, ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

TEST_F(Logs, LeavesQuietlyWhenItsReaderHasLeft)
{
    const RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now());
    print(one, Stream::out, std::string(1 << 20, 'x'));
    const int status = in_child(m_services, {"train"}, [](pid_t, int end) { ::close(end); });
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Logs, LeavesQuietlyOnInterrupt)
{
    const RunOnDisk one = run().submitted(JobId{7}).started(JobId{7}, now() + 4min);
    print(one, Stream::out, "x");
    const int status = in_child(m_services, {"-f", "train"}, [](pid_t child, int end) {
        char byte = 0;
        EXPECT_EQ(::read(end, &byte, 1), 1); // it follows the log
        ::kill(child, SIGINT);
        ::close(end);
    });
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 130);
}

/// A plain job with its output files in /home/ada.
Job plain_job(JobState state, const std::string& output, const std::string& error)
{
    Job job;
    job.id = JobId{20};
    job.name = "hand";
    job.partition = "gpu";
    job.state = state;
    job.batch = true;
    job.batch_host = "n0";
    job.files = {"job.sh", "/home/ada", output, error};
    return job;
}

TEST_F(Logs, OfAPlainJobAreTheFilesThatSlurmNames)
{
    m_services.slurm.jobs = {plain_job(JobState::running, "/home/ada/20.out", "/home/ada/20.out")};
    m_services.on_disk.directories["/home/ada"]["20.out"].bytes = "one\ntwo\n";
    EXPECT_EQ(logs({"20"}).out, "one\ntwo\n");
    EXPECT_EQ(logs({"hand"}).out, "one\ntwo\n");
    EXPECT_EQ(logs({"--to", "/tmp/x", "20"}).status, 2);
    m_services.slurm.jobs = {plain_job(JobState::failed, "/home/ada/20.out", "/home/ada/20.err")};
    m_services.slurm.jobs[0].exit_status = 3;
    m_services.on_disk.directories["/home/ada"]["20.err"].bytes = "bad\n";
    const Use followed = logs({"-f", "20"});
    EXPECT_EQ(followed.status, 3);
    EXPECT_EQ(followed.out, "one\ntwo\n");
    EXPECT_EQ(followed.err, "bad\ngpuq: job 20 (hand) ended with status 3\n");
}

/// The job begins again at the second read, as after a preemption, and ends soon after.
class RequeuedJob : public FakeServices {
public:
    class RestartedFiles : public fakes::FakeFiles {
    public:
        std::function<void()> restart;
        Result<std::string> read_at(const std::string& directory, const std::string& path,
                                    std::uint64_t offset, std::size_t size) override
        {
            if (++m_reads == 2) {
                restart();
            }
            return FakeFiles::read_at(directory, path, offset, size);
        }

    private:
        int m_reads = 0;
    };
    RestartedFiles files;
    Files& program_files() override { return files; }
};

TEST_F(Logs, OfARequeuedPlainJobContinueAtTheBeginningOfItsFile)
{
    RequeuedJob services;
    services.directory = &m_store;
    services.slurm.jobs = {plain_job(JobState::running, "/home/ada/20.out", "/home/ada/20.out")};
    std::string& file = services.files.directories["/home/ada"]["20.out"].bytes;
    file = "one\ntwo\n";
    services.files.restart = [&] {
        file = "new\n";
        services.slurm.jobs[0].state = JobState::failed;
        services.slurm.jobs[0].exit_status = 3;
    };
    const Use followed = use(k_logs_verb, services, {"-f", "20"});
    EXPECT_EQ(followed.status, 3);
    EXPECT_EQ(followed.out, "one\ntwo\nnew\n");
    EXPECT_EQ(followed.err, "gpuq: /home/ada/20.out was truncated: its new content follows\n"
                            "gpuq: job 20 (hand) ended with status 3\n");
}

TEST_F(Logs, SayWhatAPlainJobHasInsteadOfAFile)
{
    const auto printed = [&](const Job& job) {
        m_services.slurm.jobs = {job};
        const Use used = logs({"20"});
        EXPECT_EQ(used.out, "");
        EXPECT_EQ(used.status, 2);
        return used.err;
    };
    EXPECT_THAT(printed(plain_job(JobState::running, "/dev/null", "/dev/null")),
                HasSubstr("/dev/null: nothing is kept"));
    EXPECT_THAT(printed(plain_job(JobState::running, "/scratch/20.out", "/scratch/20.out")),
                HasSubstr("/scratch/20.out of job 20 (hand) is not on this host"));
    Job shell = plain_job(JobState::running, "", "");
    shell.batch = false;
    EXPECT_THAT(printed(shell), HasSubstr("srun or salloc"));
}

TEST_F(Logs, WithTimestampsHaveTheTimeOfEachLine)
{
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    RunOnDisk train = run().submitted(JobId{7}).started(JobId{7}, now());
    print(train, Stream::out, "one\ntwo\nthree");
    train.ended({0, Cause::finished, "", now()});
    m_store.append(layout::times(train.key(), LinkNumber{1}),
                   "1795000000000 4 0\n1795000001000 5 0\n");
    const Use done = logs({"-T", "train"});
    EXPECT_EQ(done.out, "2026-11-18 11:06:40 one\n2026-11-18 11:06:41 two\n"
                        "?                   three\n");
    EXPECT_EQ(logs({"-T", "--to", "/tmp/x", "train"}).status, 2);
    ::unsetenv("TZ");
    ::tzset();
}

} // namespace
} // namespace gpuq::cli
