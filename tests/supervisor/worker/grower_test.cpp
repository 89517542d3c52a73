// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/grower.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "runs/records/heartbeat.h"
#include "supervisor/stage.h"
#include "sweeps/changes.h"
#include "sweeps/numbered_sweep.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using sweeps::k_first_taken;
using sweeps::k_numbered_sweep;
using sweeps::numbered_key;

/// Worker 1 of a sweep of 100 tries, whose first try runs for a minute. The commands write their
/// arguments to a file.
class GrowerTest : public testing::Test {
protected:
    GrowerTest()
    {
        std::string name = "/tmp/gpuq-grower-XXXXXX";
        m_root = ::mkdtemp(name.data());
        const std::vector<std::string> command = {
            "sh", "-c", "echo \"$@\" >>" + m_root + "/added; exit $(cat " + m_root + "/status)",
            "-"};
        m_commands = {command, command};
        m_commands->check_queue.emplace_back("queue");
        exits_with(0);
        EXPECT_TRUE(write_sweep(m_store, m_sweep, sweeps::numbered_tries(100)));
        EXPECT_TRUE(m_store.write(layout::sweep_grows(k_numbered_sweep), ""));
        EXPECT_TRUE(m_store.write(layout::sweep_run(k_numbered_sweep, m_self), ""));
        EXPECT_TRUE(m_store.write(layout::claim(m_self, LinkNumber{1}), "1"));
        EXPECT_TRUE(m_taker.next(k_first_taken));
    }
    ~GrowerTest() override { std::filesystem::remove_all(m_root); }

    void exits_with(int status) { std::ofstream(m_root + "/status") << status; }
    /// Updates at a time, and until the child has ended.
    std::string added_at(std::chrono::seconds at)
    {
        const EventLoop::Moment now = EventLoop::Moment() + 1h + at;
        eventually([&] {
            m_grower.update(now, k_first_taken + 1min);
            return !m_grower.is_busy();
        });
        return contents(m_root + "/added");
    }

    /// An older worker runs as well.
    void another_runs()
    {
        const RunKey other = numbered_key(0);
        EXPECT_TRUE(m_store.write(layout::sweep_run(k_numbered_sweep, other), ""));
        EXPECT_TRUE(m_store.write(layout::claim(other, LinkNumber{1}), "1"));
        EXPECT_TRUE(m_store.write(layout::heartbeat(other, LinkNumber{1}),
                                  to_line(Heartbeat{k_first_taken + 1min, JobId{1}})));
    }

    std::string m_root;
    RunKey m_self = numbered_key(1);
    std::optional<GrowthCommands> m_commands;
    fakes::MemoryStore m_store;
    sweeps::Sweep m_sweep = sweeps::numbered_sweep("cal");
    sweeps::TryTaker m_taker{m_store,
                             k_numbered_sweep,
                             {numbered_key(1), LinkNumber{1}},
                             [](const sweeps::Claimant&) { return false; }};
    Grower m_grower{m_store, m_sweep, m_taker, m_self, m_commands};
};

TEST_F(GrowerTest, ExecutesTheCommandForAVacancyAtMostEveryTenSeconds)
{
    const std::string line = numbered_key(1).text() + " 2\n";
    EXPECT_EQ(added_at(0s), line);
    EXPECT_EQ(added_at(9s), line);
    EXPECT_EQ(added_at(11s), line + line) << "none has been added";
}

TEST_F(GrowerTest, ChecksAtOnceBeforeItsWorkerEnds)
{
    const std::string line = numbered_key(1).text() + " 2\n";
    EXPECT_EQ(added_at(0s), line);
    m_grower.replace_this_worker();
    EXPECT_EQ(added_at(1s), line + numbered_key(1).text() + " 2 replaces\n");
}

TEST_F(GrowerTest, WaitsTenMinutesAfterAFailure)
{
    exits_with(1);
    const std::string line = numbered_key(1).text() + " 2\n";
    EXPECT_EQ(added_at(0s), line);
    EXPECT_EQ(added_at(590s), line);
    EXPECT_EQ(added_at(601s), line + line);
}

TEST_F(GrowerTest, AddsNoneWhileOtherJobsWait)
{
    exits_with(k_status_give_way);
    const std::string line = numbered_key(1).text() + " 2\n";
    EXPECT_EQ(added_at(0s), line);
    EXPECT_EQ(added_at(119s), line);
    EXPECT_EQ(added_at(131s), line + line);
    EXPECT_FALSE(m_grower.gives_way()) << "it is the only worker";
}

TEST_F(GrowerTest, TheNewestOfSeveralWorkersChecksTheQueueEveryTwoMinutes)
{
    another_runs();
    ASSERT_TRUE(m_store.write_once(layout::sweep_added(k_numbered_sweep, m_self),
                                   RunKey::make(k_first_taken + 1min, {1}).text()));
    EXPECT_EQ(added_at(0s), "");
    EXPECT_EQ(added_at(59s), "");
    EXPECT_EQ(added_at(70s), "queue\n");
    EXPECT_EQ(added_at(189s), "queue\n");
    exits_with(k_status_give_way);
    EXPECT_FALSE(m_grower.gives_way());
    EXPECT_EQ(added_at(200s), "queue\nqueue\n");
    EXPECT_TRUE(m_grower.gives_way());
    EXPECT_EQ(added_at(20min), "queue\nqueue\n");
}

TEST_F(GrowerTest, ReadsNothingButOneFileOfASweepThatDoesNotGrow)
{
    ASSERT_TRUE(m_store.remove(layout::sweep_grows(k_numbered_sweep)));
    m_store.reads = 0;
    EXPECT_EQ(added_at(0s), "");
    EXPECT_EQ(m_store.reads, 1);
}

TEST(GrowerArguments, AreChecked)
{
    const std::string key = numbered_key(1).text();
    EXPECT_EQ(*parse_vacancy(key, "2"), (sweeps::Vacancy{numbered_key(1), 2}));
    EXPECT_FALSE(parse_vacancy("../" + key, "2"));
    EXPECT_FALSE(parse_vacancy(key, "0"));
    EXPECT_FALSE(parse_vacancy(key, "2x"));
}

} // namespace
} // namespace gpuq::supervisor
