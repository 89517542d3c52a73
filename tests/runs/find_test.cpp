// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/find.h"

#include "fakes/memory_store.h"
#include "fakes/now.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Find : public ::testing::Test {
protected:
    fakes::MemoryStore m_store;

    RunOnDisk run(const std::string& name, std::chrono::seconds age,
                  const std::string& cluster = "lab")
    {
        auto record = fakes::some_run(k_now - age, name, ++m_number);
        record.cluster = cluster;
        return RunOnDisk(m_store, record);
    }

    std::string problem(std::string_view word)
    {
        const auto found = find_run(m_store, word);
        return found ? "found " + found->text() : found.error().text;
    }

    const Ending m_well{0, Cause::finished, "", k_now};
    unsigned char m_number = 0;
};

TEST_F(Find, KnowsARunByItsJob)
{
    const RunOnDisk one = run("a", 10s).submitted(JobId{7});
    const RunOnDisk two = run("b", 5s).submitted(JobId{8});
    EXPECT_EQ(find_run(m_store, "7").value(), one.key());
    EXPECT_EQ(find_run(m_store, "8").value(), two.key());
    EXPECT_EQ(problem("9"), "no run '9'; gpuq ls --all lists yours");
    EXPECT_EQ(find_run(m_store, "99999999999999999999").error().kind, Error::Kind::missing);
    EXPECT_EQ(find_run(m_store, "0").error().kind, Error::Kind::missing);
}

TEST_F(Find, AsksWhichClusterIsMeant)
{
    RunOnDisk here = run("a", 10s, "lab").submitted(JobId{7});
    const RunOnDisk there = run("b", 5s, "../cloud").submitted(JobId{7});
    EXPECT_EQ(find_run(m_store, "7").error().kind, Error::Kind::usage);
    EXPECT_THAT(problem("7"), HasSubstr(there.key().text() + ", " + here.key().text()));
    here.ended(m_well);
    EXPECT_EQ(find_run(m_store, "7").value(), there.key()); // the only active one
}

TEST_F(Find, TakesTheNewestUnfinishedOfAName)
{
    const RunOnDisk oldest = run("train", 30s);
    const RunOnDisk older = run("train", 20s);
    RunOnDisk newest = run("train", 10s);
    EXPECT_EQ(find_run(m_store, "train").value(), newest.key());
    newest.ended(m_well);
    EXPECT_EQ(find_run(m_store, "train").value(), older.key());
    EXPECT_THAT(find_runs(m_store, "train")->unfinished, ElementsAre(older.key(), oldest.key()));
}

TEST_F(Find, TakesTheNewestOfANameWhenAllHaveEnded)
{
    const RunOnDisk older = run("train", 20s).ended(m_well);
    const RunOnDisk newest = run("train", 10s).ended(m_well);
    ASSERT_TRUE(m_store.remove(layout::active(newest.key())));
    const RunMatches matches = find_runs(m_store, "train").value();
    EXPECT_EQ(matches.finished, newest.key());
    EXPECT_TRUE(matches.unfinished.empty());
}

TEST_F(Find, KnowsTheLastRun)
{
    EXPECT_EQ(problem("last"), "no run yet; gpuq run PROGRAM starts one");
    const RunOnDisk older = run("a", 20s);
    const RunOnDisk newest = run("b", 10s).ended(m_well);
    EXPECT_EQ(find_run(m_store, "last").value(), newest.key());
    // The remains of a run that Slurm refused are ignored.
    ASSERT_TRUE(m_store.make_dir(layout::inbox(fakes::some_run(k_now, "refused").key)));
    EXPECT_EQ(find_run(m_store, "last").value(), newest.key());
}

TEST_F(Find, KnowsAKeyAndWhatLsShowsOfIt)
{
    const RunOnDisk one = run("a", 10s);
    const RunOnDisk two = run("b", 5s);
    EXPECT_EQ(find_run(m_store, one.key().text()).value(), one.key());
    EXPECT_EQ(find_run(m_store, short_key(one.key())).value(), one.key());
    EXPECT_EQ(short_key(one.key()), "ab010304");
    EXPECT_EQ(find_run(m_store, "ab0103").error().kind, Error::Kind::missing); // too short
}

TEST_F(Find, WithoutAWordMeansTheNewestThatGoesOnElseTheNewest)
{
    EXPECT_EQ(find_current_run(m_store).error().text, "no run yet; gpuq run PROGRAM starts one");
    const RunOnDisk oldest = run("a", 30s).ended(m_well);
    EXPECT_EQ(find_current_run(m_store).value(), oldest.key());
    const RunOnDisk active = run("b", 20s);
    run("c", 10s).ended(m_well);
    EXPECT_EQ(find_current_run(m_store).value(), active.key());
    const RunOnDisk newer = run("d", 5s);
    EXPECT_EQ(find_current_run(m_store).value(), newer.key());
}

TEST_F(Find, NamesWhatIsNear)
{
    run("train", 10s);
    run("evaluate", 5s).ended(m_well);
    EXPECT_THAT(problem("trian"), HasSubstr("'train'"));
    EXPECT_THAT(problem("evalate"), HasSubstr("'evaluate'"));
    EXPECT_EQ(problem("zzz"), "no run 'zzz'; gpuq ls --all lists yours");
    EXPECT_EQ(find_run(m_store, "zzz").error().kind, Error::Kind::missing);
    EXPECT_EQ(find_run(m_store, "").error().kind, Error::Kind::missing);
    EXPECT_EQ(find_run(m_store, "../../etc").error().kind, Error::Kind::missing);
}

TEST_F(Find, TakesNoIndexEntryThatLeadsNowhere)
{
    ASSERT_TRUE(m_store.write(layout::job_index("lab", JobId{7}), "../../../etc/passwd\n"));
    EXPECT_EQ(find_run(m_store, "7").error().kind, Error::Kind::missing);
}

} // namespace
} // namespace gpuq
