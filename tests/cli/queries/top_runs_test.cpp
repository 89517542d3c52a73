// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/top_runs.h"

#include "core/layout.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/memory_store.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::IsEmpty;
using Old = TopRuns::Old;

class TopRunsTest : public testing::Test {
protected:
    RunKey running()
    {
        RunOnDisk run(m_store, fakes::some_run(m_clock.now() - 1h, "train", ++m_number));
        return run.submitted(JobId{1}).started(JobId{1}, m_clock.now()).key();
    }
    RunKey ended(std::chrono::hours age)
    {
        const Time at = m_clock.now() - age;
        RunOnDisk run(m_store, fakes::some_run(at - 1h, "train", ++m_number));
        return run.submitted(JobId{2}).ended({0, Cause::finished, "", at}).key();
    }
    /// The keys of runs, and of rows.
    using Keys = std::pair<std::vector<RunKey>, std::vector<std::string>>;
    Keys read(TopRuns& runs, const std::vector<RunKey>& keys, const Overview& overview = {})
    {
        Keys read;
        auto found = runs.read(m_sources, keys, overview, m_clock.now());
        for (const RunStatus& run : found.runs) {
            read.first.push_back(run.key);
        }
        for (const auto& row : found.old) {
            read.second.push_back(row->key);
        }
        return read;
    }

    fakes::MemoryStore m_store;
    fakes::FakeClock m_clock;
    fakes::FakeCluster m_cluster;
    fakes::FakeAccounting m_accounting;
    StatusSources m_sources{m_store, m_clock, [this] { return Result<Cluster*>(&m_cluster); },
                            [this] { return Result<Accounting*>(&m_accounting); }};
    unsigned char m_number = 0;
};

TEST_F(TopRunsTest, RunsThatEndedLongAgoAreRows)
{
    const RunKey active = running(), recent = ended(2h), old = ended(48h);
    TopRuns rows(Old::as_rows), states(Old::as_runs);
    EXPECT_EQ(read(rows, {active, recent, old}), Keys({active, recent}, {old.text()}));
    EXPECT_EQ(read(states, {active, recent, old}), Keys({active, recent, old}, {}));
    m_clock.advance(23h);
    EXPECT_EQ(read(rows, {active, recent, old}), Keys({active}, {recent.text(), old.text()}));
    EXPECT_EQ(read(rows, {active}), Keys({active}, {})) << "the others were removed";
    EXPECT_THAT(m_cluster.requests, IsEmpty());
}

TEST_F(TopRunsTest, ReadsTheEndOfARunOnce)
{
    std::vector<RunKey> keys;
    for (int i = 0; i < 200; ++i) {
        keys.push_back(ended(std::chrono::hours(20 + i)));
    }
    TopRuns rows(Old::as_rows);
    const auto first = rows.read(m_sources, keys, {}, m_clock.now());
    EXPECT_EQ(first.runs.size(), 5U);
    m_store.reads = 0;
    const auto second = rows.read(m_sources, keys, {}, m_clock.now());
    EXPECT_LT(m_store.reads, 10);
    EXPECT_EQ(second.old, first.old) << "the same objects";
}

TEST_F(TopRunsTest, AResumedRunIsNoRow)
{
    const RunKey old = ended(48h);
    TopRuns rows(Old::as_rows);
    EXPECT_EQ(read(rows, {old}), Keys({}, {old.text()}));
    ASSERT_TRUE(m_store.write(layout::active(old), ""));
    ASSERT_TRUE(m_store.remove(layout::journal(old, LinkNumber{1})));
    EXPECT_EQ(read(rows, {old}), Keys({old}, {}));
}

/// The screen then counts its GPUs as free.
TEST_F(TopRunsTest, ARunThatEndedAfterTheLastResponseIsNoRow)
{
    const RunKey old = ended(48h);
    TopRuns rows(Old::as_rows);
    Overview overview;
    overview.jobs_at = m_clock.now() - 50h;
    EXPECT_EQ(read(rows, {old}, overview), Keys({old}, {}));
    overview.jobs_at = m_clock.now();
    EXPECT_EQ(read(rows, {old}, overview), Keys({}, {old.text()}));
}

} // namespace
} // namespace gpuq::cli
