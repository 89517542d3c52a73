// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/cleaning.h"

#include "runs/evidence.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using fakes::some_run;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Time k_this_day{std::chrono::sys_days{std::chrono::year{2026} / 11 / 21}};

RunKey key(unsigned char number)
{
    return RunKey::make(k_this_day - 1000h, {number});
}

RunOnShelf run(unsigned char number, std::optional<std::chrono::seconds> age, std::uint64_t bytes)
{
    return {key(number), age ? std::optional<Time>(k_this_day - *age) : std::nullopt, bytes};
}

std::vector<RunKey> gone(std::vector<RunOnShelf> runs, const Retention& retention)
{
    std::vector<RunKey> keys;
    for (const RunOnShelf& one : outdated(std::move(runs), retention, k_this_day)) {
        keys.push_back(one.key);
    }
    return keys;
}

TEST(Cleaning, TakesWhatEndedLongAgoOldestFirst)
{
    const Retention retention{48h, std::nullopt};
    EXPECT_THAT(gone({run(1, 47h, 1), run(2, 49h, 1), run(3, 90h, 1), run(4, 48h, 1)}, retention),
                ElementsAre(key(3), key(2)));
    EXPECT_THAT(gone({}, retention), IsEmpty());
}

TEST(Cleaning, NeverTakesARunWhoseEndIsNotKnownOrWasJustNow)
{
    const Retention nothing{0s, 0};
    EXPECT_THAT(gone({run(1, std::nullopt, 1000), run(2, 59s, 1000), run(3, -5h, 1)}, nothing),
                IsEmpty());
    EXPECT_THAT(gone({run(1, std::nullopt, 1000), run(2, 60s, 1000)}, nothing),
                ElementsAre(key(2)));
}

TEST(Cleaning, TakesTheOldestUntilTheRestFits)
{
    const Retention retention{std::nullopt, 100};
    EXPECT_THAT(gone({run(1, 3h, 40), run(2, 2h, 40), run(3, 1h, 60)}, retention),
                ElementsAre(key(1)));
    EXPECT_THAT(gone({run(1, 3h, 40), run(2, 2h, 60)}, retention), IsEmpty());
    // The size of an active run counts, but the run is kept.
    EXPECT_THAT(gone({run(1, std::nullopt, 500), run(2, 2h, 1), run(3, 3h, 1)}, retention),
                ElementsAre(key(3), key(2)));
}

TEST(Cleaning, KeepsAllWithoutALimit)
{
    EXPECT_THAT(gone({run(1, 90000h, 1ULL << 50U)}, {}), IsEmpty());
}

class OnDisk : public testing::Test {
protected:
    fakes::MemoryStore m_store;
};

TEST_F(OnDisk, ARunGoesWithItsIndexesAndNothingElse)
{
    RunOnDisk old(m_store, some_run(k_this_day - 90h, "old", 1));
    old.submitted(JobId{7}).ended({0, Cause::finished, "", k_this_day - 89h});
    RunOnDisk other(m_store, some_run(k_this_day - 80h, "other", 2));
    other.submitted(JobId{8});
    ASSERT_TRUE(remove_run(m_store, old.key()));
    EXPECT_THAT(all_runs(m_store).value(), ElementsAre(other.key()));
    EXPECT_THAT(active_runs(m_store).value(), ElementsAre(other.key()));
    EXPECT_FALSE(m_store.read(layout::job_index("lab", JobId{7})));
    EXPECT_TRUE(m_store.read(layout::job_index("lab", JobId{8})));
    EXPECT_TRUE(remove_run(m_store, old.key())); // again
}

TEST_F(OnDisk, AnIndexThatHasBecomeAnotherRunsStays)
{
    RunOnDisk old(m_store, some_run(k_this_day - 90h, "old", 1));
    old.submitted(JobId{7});
    RunOnDisk newer(m_store, some_run(k_this_day - 1h, "newer", 2));
    newer.submitted(JobId{7}); // the cluster was set up again
    ASSERT_TRUE(remove_run(m_store, old.key()));
    EXPECT_EQ(m_store.read(layout::job_index("lab", JobId{7})).value(), newer.key().text() + "\n");
}

TEST_F(OnDisk, OnlyAnEndThatIsKnownCounts)
{
    RunOnDisk run(m_store, some_run(k_this_day - 90h, "run", 1));
    RunStatus status{run.key()};
    status.state = RunState::ended;
    EXPECT_EQ(on_shelf(m_store, status).ended_at, std::nullopt);
    EXPECT_GT(on_shelf(m_store, status).bytes, 0U);
    status.ending = Ending{0, Cause::finished, "", k_this_day - 89h};
    EXPECT_EQ(on_shelf(m_store, status).ended_at, k_this_day - 89h);
    status.state = RunState::unknown;
    EXPECT_EQ(on_shelf(m_store, status).ended_at, std::nullopt);
}

} // namespace
} // namespace gpuq
