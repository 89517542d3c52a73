// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/listed_runs.h"

#include "fakes/memory_store.h"
#include "fakes/now.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::ElementsAre;

class ListedRunsTest : public testing::Test {
protected:
    /// Made three days ago.
    RunOnDisk ended(unsigned char number, Time at)
    {
        RunOnDisk run(store, fakes::some_run(k_now - 72h, "train", number));
        run.ended({0, Cause::finished, "", at, false});
        (void)store.remove(layout::active(run.key()));
        return run;
    }
    std::vector<RunKey> read(Time now = k_now) { return *listed.read(store, false, now); }

    fakes::MemoryStore store;
    ListedRuns listed;
};

TEST_F(ListedRunsTest, HasOldRunsThatEndedWithinADay)
{
    const RunKey recent = ended(1, k_now - 1h).key();
    ended(2, k_now - 48h);
    EXPECT_THAT(read(), ElementsAre(recent));
}

/// A screen lists the runs every two seconds.
TEST_F(ListedRunsTest, ReadsTheEndOfARunOnce)
{
    for (unsigned char number = 0; number < 100; ++number) {
        ended(number, k_now - 48h);
    }
    read();
    store.reads = 0;
    read(k_now + 1s);
    EXPECT_LT(store.reads, 10);
}

TEST_F(ListedRunsTest, ReadsTheDirectoryOfManyRunsRarely)
{
    for (unsigned char number = 0; number < 100; ++number) {
        ended(number, k_now - 48h);
    }
    EXPECT_THAT(read(), ElementsAre());
    const RunKey other = ended(200, k_now - 1h).key(); // it was active between two readings
    store.reads = 0;
    EXPECT_THAT(read(k_now + 99ms), ElementsAre());
    EXPECT_EQ(store.reads, 1) << "the active runs";
    EXPECT_THAT(read(k_now + 100ms), ElementsAre(other));
}

TEST_F(ListedRunsTest, ReadsTheEndOfAResumedRunAgain)
{
    RunOnDisk run = ended(1, k_now - 48h);
    EXPECT_THAT(read(), ElementsAre());
    ASSERT_TRUE(store.write(layout::active(run.key()), ""));
    EXPECT_THAT(read(), ElementsAre(run.key()));
    run.ended({0, Cause::finished, "", k_now - 1s, false});
    ASSERT_TRUE(store.remove(layout::active(run.key())));
    EXPECT_THAT(read(), ElementsAre(run.key()));
}

} // namespace
} // namespace gpuq::cli
