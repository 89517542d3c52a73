// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/grower.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
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

/// Worker 1 of a sweep of 100 tries, whose first try runs for a minute. The command that adds a
/// worker writes its arguments to a file.
class GrowerTest : public testing::Test {
protected:
    GrowerTest()
    {
        std::string name = "/tmp/gpuq-grower-XXXXXX";
        m_root = ::mkdtemp(name.data());
        m_command = {"sh", "-c",
                     "echo \"$@\" >>" + m_root + "/added; exit $(cat " + m_root + "/status)", "-"};
        exits_with(0);
        EXPECT_TRUE(write_sweep(m_store, m_sweep, sweeps::numbered_tries(100)));
        EXPECT_TRUE(m_store.write(layout::sweep_grows(k_numbered_sweep), ""));
        const RunKey self = numbered_key(1);
        EXPECT_TRUE(m_store.write(layout::sweep_run(k_numbered_sweep, self), ""));
        EXPECT_TRUE(m_store.write(layout::claim(self, LinkNumber{1}), "1"));
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
            return !m_grower.is_adding();
        });
        return contents(m_root + "/added");
    }

    std::string m_root;
    std::vector<std::string> m_command;
    fakes::MemoryStore m_store;
    sweeps::Sweep m_sweep = sweeps::numbered_sweep("cal");
    sweeps::TryTaker m_taker{m_store,
                             k_numbered_sweep,
                             {numbered_key(1), LinkNumber{1}},
                             [](const sweeps::Claimant&) { return false; }};
    Grower m_grower{m_store, m_sweep, m_taker, m_command};
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
    m_grower.check_at_once();
    EXPECT_EQ(added_at(1s), line + line);
}

TEST_F(GrowerTest, WaitsTenMinutesAfterAFailure)
{
    exits_with(1);
    const std::string line = numbered_key(1).text() + " 2\n";
    EXPECT_EQ(added_at(0s), line);
    EXPECT_EQ(added_at(590s), line);
    EXPECT_EQ(added_at(601s), line + line);
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
