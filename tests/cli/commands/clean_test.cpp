// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/json_page.h"
#include "core/layout.h"
#include "runs/evidence.h"
#include "runs/run_on_disk.h"
#include "snapshots/take.h"
#include "sweeps/changes.h"
#include "sweeps/numbered_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Clean : public testing::Test {
protected:
    Time now() { return m_services.time.now(); }

    RunOnDisk run(const std::string& name, std::chrono::seconds age)
    {
        return RunOnDisk(m_services.memory, fakes::some_run(now() - age, name, ++m_number));
    }

    RunOnDisk ended(const std::string& name, std::chrono::seconds age)
    {
        RunOnDisk record = run(name, age + 1h);
        record.submitted(JobId{m_number}).ended({0, Cause::finished, "", now() - age});
        return record;
    }

    Use clean(const std::vector<std::string>& arguments, const Globals& globals = {})
    {
        return use(k_clean_verb, m_services, arguments, globals);
    }

    std::vector<RunKey> left() { return all_runs(m_services.memory).value(); }

    FakeServices m_services;
    unsigned char m_number = 0;
};

TEST_F(Clean, RemovesWhatIsOlderThanAMonthUnlessToldOtherwise)
{
    const auto old = ended("old", 24h * 31);
    const auto newer = ended("newer", 24h * 29);
    const Use result = clean({"--yes"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, ContainsRegex("\n *1 +old "));
    EXPECT_THAT(result.out, Not(HasSubstr("newer")));
    EXPECT_THAT(result.err, ContainsRegex("gpuq: removed 1 run, [0-9]"));
    EXPECT_THAT(left(), ElementsAre(newer.key()));
}

TEST_F(Clean, ADryRunRemovesNothingAndTellsTheSizes)
{
    ended("old", 24h * 31);
    const Use result = clean({"--dry-run"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, ContainsRegex("old .* (bytes|KiB)"));
    EXPECT_THAT(result.err, HasSubstr("would remove 1 run"));
    EXPECT_EQ(left().size(), 1U);
}

TEST_F(Clean, WithoutATerminalItWantsAYes)
{
    ended("old", 24h * 31);
    const Use result = clean({});
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr("--yes"));
    EXPECT_EQ(left().size(), 1U);
}

TEST_F(Clean, NeverTouchesAnActiveRunOrOneNobodyKnows)
{
    auto active = run("active", 24h * 90);
    active.submitted(JobId{50}).started(JobId{50}, now()).beat(JobId{50}, now());
    run("unknown", 24h * 90).submitted(JobId{51});
    ended("old", 24h * 31);
    m_services.slurm.silent = true;
    const Use result = clean({"--yes", "--keep", "0s,1K"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("runs that may be active are kept"));
    EXPECT_EQ(left().size(), 2U);
}

TEST_F(Clean, TheSettingsSayWhatIsKept)
{
    ended("week", 24h * 7);
    m_services.set.keep = Retention{24h * 6, std::nullopt};
    EXPECT_THAT(clean({"-n"}).err, HasSubstr("would remove 1 run"));
    EXPECT_THAT(clean({"-n", "--keep", "8d"}).err, HasSubstr("would remove 0 runs"));
    EXPECT_EQ(clean({"--keep", "8"}).status, 2);
    EXPECT_EQ(clean({"now"}).status, 2);
}

TEST_F(Clean, SnapshotsGoAnHourAfterTheLastRunThatNeedsThem)
{
    std::string directory = testing::TempDir() + "gpuq-clean-XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    const auto taken = [&](const char* code) {
        std::ofstream(directory + "/a.py") << code;
        return snapshots::take(m_services.memory, directory, {}, true);
    };
    const auto first = taken("1");
    ASSERT_TRUE(first && taken("2"));
    const auto use = [&](const RunOnDisk& run) {
        ASSERT_TRUE(m_services.memory.write(layout::snapshot(run.key()),
                                            to_json(snapshots::Reference{first->id, false})));
    };
    use(ended("old", 24h * 31));
    use(ended("newer", 24h * 29));
    const auto is_there = [&] { return snapshots::read(m_services.memory, first->id).has_value(); };
    for (const auto& keep : {"30d", "30d", "1d", "1d"}) {
        EXPECT_TRUE(is_there());
        EXPECT_EQ(clean({"--yes", "--keep", keep}).status, 0);
        m_services.time.advance(61min);
    }
    EXPECT_FALSE(is_there());
    EXPECT_THAT(left(), testing::IsEmpty());
    std::filesystem::remove_all(directory);
}

class CleanSweeps : public Clean {
protected:
    /// A sweep of one try, and a worker of it that has ended; the try has not.
    RunOnDisk worker(std::chrono::seconds age)
    {
        gpuq::Run run = fakes::some_run(now() - age - 1h, "cal-w1", ++m_number);
        run.request.sweep = SweepWorker{m_sweep.run.key, 1};
        EXPECT_TRUE(m_services.memory.write(layout::sweep_run(m_sweep.run.key, run.key), ""));
        RunOnDisk record(m_services.memory, run);
        record.submitted(JobId{m_number}).ended({0, Cause::finished, "", now() - age});
        return record;
    }

    std::size_t sweeps_left() { return sweeps::all_sweeps(m_services.memory)->size(); }

    void SetUp() override
    {
        m_sweep.gpu_time = 60min;
        ASSERT_TRUE(write_sweep(m_services.memory, m_sweep, sweeps::numbered_tries(1)));
        worker(24h * 31);
        worker(24h * 32);
    }

    sweeps::Sweep m_sweep = sweeps::numbered_sweep("cal");
};

TEST_F(CleanSweeps, AStoppedSweepGoesWithItsWorkers)
{
    ASSERT_TRUE(sweeps::stop_sweep(m_services.memory, m_sweep.run.key));
    EXPECT_EQ(clean({"--yes"}).status, 0);
    EXPECT_EQ(sweeps_left(), 0U);
}

TEST_F(CleanSweeps, ASweepThatCouldContinueStaysUntilItIsStopped)
{
    EXPECT_EQ(clean({"--yes"}).status, 0);
    EXPECT_EQ(sweeps_left(), 1U);
    ASSERT_TRUE(sweeps::stop_sweep(m_services.memory, m_sweep.run.key));
    EXPECT_THAT(clean({}).err, HasSubstr("nothing to remove"));
    EXPECT_EQ(sweeps_left(), 0U);
}

TEST_F(CleanSweeps, ASweepIsKeptWhileTheStateOfItsWorkersCannotBeRead)
{
    ASSERT_TRUE(sweeps::stop_sweep(m_services.memory, m_sweep.run.key));
    for (const RunKey& key : left()) {
        m_services.memory.unreadable.insert(layout::run_json(key));
    }
    (void)clean({"--yes"});
    EXPECT_EQ(sweeps_left(), 1U);
}

TEST_F(CleanSweeps, ASweepThatItsClientCouldNotWriteIsRemovedAfterADay)
{
    const RunKey begun = RunKey::make(now() - 25h, {1});
    const RunKey just_now = RunKey::make(now() - 1h, {2});
    for (const RunKey& key : {begun, just_now}) {
        ASSERT_TRUE(m_services.memory.write(layout::sweep_snapshot(key), "{}"));
    }
    EXPECT_EQ(clean({"--yes"}).status, 0);
    EXPECT_TRUE(m_services.memory.size(layout::sweep_snapshot(just_now)));
    EXPECT_FALSE(m_services.memory.size(layout::sweep_snapshot(begun)));
}

TEST_F(CleanSweeps, TheFilesOfASweepCountAsThoseOfItsLastWorker)
{
    ASSERT_TRUE(m_services.memory.write(layout::try_dir(m_sweep.run.key, 1) + "/checkpoints/a",
                                        std::string(3 << 20, '.')));
    const Use result = clean({"--dry-run", "--keep", "2M"});
    EXPECT_THAT(result.err, HasSubstr("would remove 2 runs, 3"));
    EXPECT_THAT(clean({"--dry-run", "--keep", "4M"}).err, HasSubstr("would remove 0 runs"));
}

TEST_F(Clean, AFolderThatStaysIsAnError)
{
    ended("old", 24h * 31);
    m_services.memory.read_only = true;
    const Use result = clean({"--yes"});
    EXPECT_NE(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("Read-only file system"));
    EXPECT_EQ(left().size(), 1U);
}

TEST_F(Clean, TheJsonTellsWhatWasRemoved)
{
    ended("old", 24h * 31);
    Globals globals;
    globals.json = true;
    const Use dry = clean({"--dry-run"}, globals);
    EXPECT_THAT(dry.out, HasSubstr("\"dry_run\": true"));
    const Use result = clean({"--yes"}, globals);
    EXPECT_THAT(result.out, HasSubstr("\"name\": \"old\""));
    EXPECT_THAT(result.out, HasSubstr("\"dry_run\": false"));
    EXPECT_EQ(members_in(result.out), documented_in("gpuq clean"));
    EXPECT_EQ(result.err, "");
}

} // namespace
} // namespace gpuq::cli
