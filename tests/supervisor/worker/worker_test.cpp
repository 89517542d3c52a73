// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/worker.h"

#include "core/exit_status.h"
#include "core/layout.h"
#include "fakes/fake_files.h"
#include "fakes/memory_store.h"
#include "posix/store.h"
#include "runs/records/heartbeat.h"
#include "supervisor/stage.h"
#include "supervisor/worker/slot.h"
#include "sweeps/changes.h"
#include "sweeps/numbered_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using sweeps::k_numbered_sweep;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A disk on which no try's end can be recorded for some time, or no directory created.
class FullStore : public PosixStore {
public:
    enum class For { ends, directories };
    FullStore(std::string root, std::chrono::milliseconds full, For fails = For::ends)
        : PosixStore(std::move(root))
        , m_until(std::chrono::steady_clock::now() + full)
        , m_fails(fails)
    {
    }
    Result<void> append_line(const std::string& path, std::string_view line) override
    {
        const bool is_end = line.find("ended") != std::string_view::npos;
        return is_end && m_fails == For::ends && is_full() ? full(path)
                                                           : PosixStore::append_line(path, line);
    }
    Result<void> make_dir(const std::string& path) override
    {
        return m_fails == For::directories && is_full() ? full(path) : PosixStore::make_dir(path);
    }

private:
    bool is_full() const { return std::chrono::steady_clock::now() < m_until; }
    static Error full(const std::string& path)
    {
        return fail(Error::Kind::io, path + ": No space left on device");
    }

    std::chrono::steady_clock::time_point m_until;
    For m_fails;
};

class WorkerTest : public testing::Test {
protected:
    WorkerTest()
    {
        std::string name = "/tmp/gpuq-worker-XXXXXX";
        m_root = ::mkdtemp(name.data());
        FullStore store(m_root, 0s);
        sweeps::Sweep sweep = sweeps::numbered_sweep("cal");
        sweep.run.request.program = {"true"};
        sweep.run.request.work_dir = "/";
        EXPECT_TRUE(write_sweep(store, sweep, sweeps::numbered_tries(2)));
    }
    ~WorkerTest() override { std::filesystem::remove_all(m_root); }

    /// Exit status of a worker in a process of its own; its messages are in `messages`.
    int work_on(std::chrono::milliseconds full, std::chrono::milliseconds patience,
                FullStore::For fails = FullStore::For::ends)
    {
        const std::string messages = m_root + "/messages";
        const pid_t child = ::fork();
        if (child == 0) {
            (void)!std::freopen(messages.c_str(), "w", stderr);
            std::setvbuf(stderr, nullptr, _IONBF, 0);
            FullStore store(m_root, full, fails);
            RealClock clock;
            fakes::FakeFiles files;
            WorkerPlan plan{k_numbered_sweep,
                            {sweeps::numbered_key(1), LinkNumber{1}},
                            m_root + "/no-stop",
                            [](const Request& request) { return request.program; },
                            {},
                            [this](const std::vector<JobId>& jobs) {
                                std::ofstream(m_root + "/withdrawn") << jobs.size();
                            }};
            plan.patience = patience;
            plan.growth = growth;
            plan.deadline = m_deadline;
            const auto status = work(store, clock, files, plan);
            std::fflush(nullptr);
            ::_exit(status ? *status : 1);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        std::ifstream in(messages);
        this->messages = {std::istreambuf_iterator<char>(in), {}};
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    std::vector<sweeps::TryEnd> ends()
    {
        FullStore store(m_root, 0s);
        sweeps::Board board(store, k_numbered_sweep);
        EXPECT_TRUE(board.refresh());
        std::vector<sweeps::TryEnd> ends;
        for (const sweeps::Try& entry : board.tries()) {
            EXPECT_TRUE(entry.end && entry.attempt == 1);
            ends.push_back(entry.end ? entry.end->end : sweeps::TryEnd::lost);
        }
        return ends;
    }

    std::string messages;
    std::string m_root;
    std::optional<GrowthCommands> growth;
    std::optional<Time> m_deadline; ///< of the worker
};

TEST_F(WorkerTest, RunsEveryTry)
{
    EXPECT_EQ(work_on(0s, 1h), 0);
    EXPECT_EQ(messages, "");
}

TEST_F(WorkerTest, WithdrawsTheWorkersThatWaitIfTheSweepIsSpentOrStopped)
{
    FullStore store(m_root, 0s);
    const RunKey waiting = sweeps::numbered_key(2);
    EXPECT_TRUE(store.write(layout::sweep_run(k_numbered_sweep, waiting), ""));
    EXPECT_TRUE(store.write(layout::job_json(waiting, LinkNumber{1}),
                            to_json(LinkJob{"lab", JobId{7}, {}, true})));
    ASSERT_TRUE(sweeps::stop_sweep(store, k_numbered_sweep));
    EXPECT_EQ(work_on(0s, 1h), 0);
    EXPECT_EQ(contents(m_root + "/withdrawn"), "1");
    EXPECT_TRUE(store.size(layout::inbox(waiting) + "/" + layout::k_stop_request));
    std::filesystem::remove(m_root + "/withdrawn");
    ASSERT_TRUE(sweeps::continue_sweep(store, k_numbered_sweep));
    sweeps::Sweep sweep = sweeps::numbered_sweep("cal");
    sweep.gpu_time = 0min;
    EXPECT_TRUE(store.write(layout::sweep_json(k_numbered_sweep), to_json(sweep)));
    EXPECT_EQ(work_on(0s, 1h), 0);
    EXPECT_EQ(contents(m_root + "/withdrawn"), "1");
}

TEST_F(WorkerTest, WithdrawsNoWorkerThatMayHaveStarted)
{
    FullStore store(m_root, 0s);
    const RunKey other = sweeps::numbered_key(2);
    EXPECT_TRUE(store.write(layout::sweep_run(k_numbered_sweep, other), ""));
    EXPECT_TRUE(store.write(layout::job_json(other, LinkNumber{1}),
                            to_json(LinkJob{"lab", JobId{7}, {}, true})));
    const std::string claim = m_root + "/" + layout::claim(other, LinkNumber{1});
    std::filesystem::create_symlink("claim", claim); // it can't be read
    ASSERT_TRUE(sweeps::stop_sweep(store, k_numbered_sweep));
    EXPECT_EQ(work_on(0s, 1h), 0);
    EXPECT_FALSE(std::filesystem::exists(m_root + "/withdrawn"));
    EXPECT_FALSE(store.size(layout::inbox(other) + "/" + layout::k_stop_request));
}

/// Worker 1 gives way during its first try. Worker 0 is older.
class GivingWayTest : public WorkerTest {
protected:
    GivingWayTest()
    {
        EXPECT_TRUE(m_store.write(layout::sweep_grows(k_numbered_sweep), ""));
        EXPECT_TRUE(m_store.write(layout::sweep_run(k_numbered_sweep, m_older), ""));
        EXPECT_TRUE(m_store.write(layout::claim(m_older, LinkNumber{1}), "1"));
        EXPECT_TRUE(m_store.write(layout::sweep_run(k_numbered_sweep, m_waiting), ""));
        EXPECT_TRUE(m_store.write(layout::run_json(m_waiting), "{}"));
        EXPECT_TRUE(m_store.write(layout::job_json(m_waiting, LinkNumber{1}),
                                  to_json(LinkJob{"lab", JobId{7}, {}, true})));
        sweeps::Sweep sweep = sweeps::numbered_sweep("cal");
        sweep.run.request.work_dir = m_root;
        sweep.run.request.program = {"sh", "-c", "while [ ! -e withdrawn ]; do sleep 0.01; done"};
        EXPECT_TRUE(m_store.write(layout::sweep_json(k_numbered_sweep), to_json(sweep)));
        growth = {{"false"}, {"sh", "-c", fmt::format("exit {}", k_status_give_way)}, 0ms};
    }
    void older_beats(std::chrono::seconds ago, std::uint64_t out = 0)
    {
        EXPECT_TRUE(m_store.write(layout::heartbeat(m_older, LinkNumber{1}),
                                  to_line(Heartbeat{RealClock().now() - ago, JobId{1}, 1, out})));
    }
    std::vector<sweeps::Try> tries()
    {
        sweeps::Board board(m_store, k_numbered_sweep);
        EXPECT_TRUE(board.refresh());
        return board.tries();
    }

    FullStore m_store{m_root, 0s};
    const RunKey m_older = sweeps::numbered_key(0), m_waiting = sweeps::numbered_key(2);
};

TEST_F(GivingWayTest, EndsAfterItsTryIfAnOlderOneContinues)
{
    older_beats(0s);
    const pid_t older = ::fork();
    if (older == 0) {
        for (std::uint64_t out = 1;; ++out) {
            older_beats(0s, out);
            std::this_thread::sleep_for(100ms);
        }
    }
    EXPECT_EQ(work_on(0s, 1h), 0);
    ::kill(older, SIGKILL);
    ::waitpid(older, nullptr, 0);
    EXPECT_THAT(messages, HasSubstr("this worker ends after its tries"));
    EXPECT_THAT(messages, Not(HasSubstr("takes tries again")));
    EXPECT_TRUE(m_store.size(layout::inbox(m_waiting) + "/" + layout::k_stop_request));
    EXPECT_EQ(tries()[0].end->end, sweeps::TryEnd::finished);
    EXPECT_EQ(tries()[1].attempt, 0);
}

TEST_F(GivingWayTest, TakesTriesAgainIfTheOlderOneIsLost)
{
    older_beats(0s);
    const pid_t older = ::fork();
    if (older == 0) {
        eventually([this] {
            older_beats(0s);
            return std::filesystem::exists(m_root + "/withdrawn");
        });
        older_beats(k_heartbeat_fresh - 1s); // its last one
        ::_exit(0);
    }
    EXPECT_EQ(work_on(0s, 1h), 0);
    ::waitpid(older, nullptr, 0);
    EXPECT_THAT(messages, HasSubstr("this worker ends after its tries"));
    EXPECT_THAT(messages, HasSubstr("no older worker of the sweep is left"));
    EXPECT_THAT(ends(), ElementsAre(sweeps::TryEnd::finished, sweeps::TryEnd::finished));
}

TEST_F(WorkerTest, ATryThatEndsTogetherWithItsWorkerContinues)
{
    sweeps::Sweep sweep = sweeps::numbered_sweep("cal");
    sweep.run.request.work_dir = m_root;
    sweep.run.request.program = {"sh", "-c",
                                 "setsid sh -c \"touch ready; sleep 0.1; kill $PPID\" & "
                                 "while [ ! -e ready ]; do sleep 0.01; done; kill $$"};
    EXPECT_TRUE(FullStore(m_root, 0s).write(layout::sweep_json(k_numbered_sweep), to_json(sweep)));
    EXPECT_EQ(work_on(0s, 1h), k_status_continue_me);
    FullStore store(m_root, 0s);
    sweeps::Board board(store, k_numbered_sweep);
    ASSERT_TRUE(board.refresh());
    EXPECT_EQ(board.tries()[0].end->end, sweeps::TryEnd::paused);
    EXPECT_EQ(board.tries()[0].state, sweeps::Try::State::waiting);
    EXPECT_EQ(board.tries()[1].attempt, 0);
}

TEST_F(WorkerTest, AddsAnotherForTheTryThatItLeavesAtItsTimeLimit)
{
    sweeps::Sweep sweep = sweeps::numbered_sweep("cal");
    sweep.run.request.work_dir = m_root;
    sweep.run.request.program = {"sh", "-c", "kill $PPID; sleep 0.1; kill $$"};
    FullStore store(m_root, 0s);
    const RunKey self = sweeps::numbered_key(1);
    EXPECT_TRUE(store.write(layout::sweep_json(k_numbered_sweep), to_json(sweep)));
    EXPECT_TRUE(store.write(layout::sweep_grows(k_numbered_sweep), ""));
    EXPECT_TRUE(store.write(layout::sweep_run(k_numbered_sweep, self), ""));
    EXPECT_TRUE(store.write(layout::claim(self, LinkNumber{1}), "1"));
    growth = {{"sh", "-c", "echo \"$@\" >" + m_root + "/added", "-"}, {"true"}};
    m_deadline = RealClock().now() + 1h;
    EXPECT_EQ(work_on(0s, 1h), k_status_continue_me);
    EXPECT_EQ(contents(m_root + "/added"), "") << "the user has cancelled it";
    m_deadline = RealClock().now() + 20s;
    EXPECT_EQ(work_on(0s, 1h), k_status_continue_me);
    EXPECT_EQ(contents(m_root + "/added"), self.text() + " 2 replaces\n");
    std::filesystem::remove(m_root + "/added");
    sweep.run.request.chain.emplace();
    EXPECT_TRUE(store.write(layout::sweep_json(k_numbered_sweep), to_json(sweep)));
    EXPECT_EQ(work_on(0s, 1h), k_status_continue_me);
    EXPECT_EQ(contents(m_root + "/added"), "") << "its next link continues";
}

TEST(SlotTest, ItsBestValueIsThatOfAllAttemptsThatItContinues)
{
    fakes::MemoryStore store;
    Slot slot({}, 0, nullptr);
    slot.continue_from({0.3, 0.1, 5});
    const sweeps::Metric metric{"loss", sweeps::Metric::Goal::min};
    EXPECT_EQ(slot.values(metric), (sweeps::TryValues{0.3, 0.1, 5}));
    store.append("log", "step 6 loss 0.2\nstep 7 loss 0.4\n");
    slot.read_rest_of_log(store, "log");
    EXPECT_EQ(slot.values(metric), (sweeps::TryValues{0.4, 0.1, 5}));
    store.append("log", "step 8 loss 0.05\n");
    slot.read_rest_of_log(store, "log");
    EXPECT_EQ(slot.values(metric), (sweeps::TryValues{0.05, 0.05, 8}));
}

TEST_F(WorkerTest, WaitsForAFullDiskToHaveSpaceAgain)
{
    EXPECT_EQ(work_on(1s, 1h), 0);
    EXPECT_THAT(messages, HasSubstr("No space left on device; trying again\n"));
    EXPECT_THAT(messages, Not(HasSubstr("this worker releases")));
}

TEST_F(WorkerTest, GivesItsGpusBackOnceItsSweepIsDeleted)
{
    const pid_t user = ::fork();
    if (user == 0) {
        eventually([&] { return !contents(m_root + "/messages").empty(); });
        std::filesystem::remove_all(m_root + "/" + layout::sweep_dir(k_numbered_sweep));
        ::_exit(0);
    }
    EXPECT_EQ(work_on(1h, 1h), static_cast<int>(ExitStatus::internal));
    ::waitpid(user, nullptr, 0);
    EXPECT_THAT(messages, HasSubstr("): this worker releases its GPUs"));
}

TEST_F(WorkerTest, GivesItsGpusBackIfTheDiskStaysFull)
{
    EXPECT_EQ(work_on(1h, 1s), static_cast<int>(ExitStatus::internal));
    EXPECT_THAT(messages, HasSubstr("nothing could be recorded for 1 s ("));
    EXPECT_THAT(
        messages,
        HasSubstr(
            "): this worker releases its GPUs; no end is recorded of try 1, which runs again\n"));
}

TEST_F(WorkerTest, StartsATryLaterWhoseDirectoryCannotBeMadeNow)
{
    EXPECT_EQ(work_on(1s, 1h, FullStore::For::directories), 0);
    EXPECT_THAT(messages, HasSubstr("checkpoints: No space left on device; trying again\n"));
    EXPECT_THAT(ends(), ElementsAre(sweeps::TryEnd::finished, sweeps::TryEnd::finished));
}

TEST_F(WorkerTest, ATryWhoseDirectoryCannotBeMadeForLongHasNotStarted)
{
    EXPECT_EQ(work_on(1h, 100ms, FullStore::For::directories), 0);
    EXPECT_THAT(ends(), ElementsAre(sweeps::TryEnd::not_started, sweeps::TryEnd::not_started));
}

} // namespace
} // namespace gpuq::supervisor
