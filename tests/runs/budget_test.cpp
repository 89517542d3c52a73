// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/budget.h"

#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/memory_store.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class BudgetTest : public ::testing::Test {
protected:
    /// Of two GPUs for two hours.
    RunOnDisk run()
    {
        gpuq::Run run = fakes::some_run(m_clock.now(), "train", ++m_number);
        run.request.gpus.count = 2;
        return RunOnDisk(m_store, std::move(run));
    }

    Result<void> charge_for(const RunOnDisk& run)
    {
        return charge(m_sources, m_budget, run.key(), most_gpu_time(run.run().request));
    }

    RunOnDisk& end(RunOnDisk& run, std::chrono::seconds ran)
    {
        return run.submitted(JobId{m_number})
            .started(JobId{m_number}, m_clock.now() - ran)
            .ended({0, Cause::finished, "", m_clock.now()});
    }

    void put(const std::string& path, const std::string& content)
    {
        EXPECT_TRUE(m_store.write(path, content));
    }

    BudgetUse use() { return use_of(m_sources, m_budget).value(); }

    fakes::MemoryStore m_store;
    fakes::FakeClock m_clock;
    fakes::FakeCluster m_cluster;
    fakes::FakeAccounting m_accounting;
    StatusSources m_sources{m_store, m_clock, [this] { return Result<Cluster*>(&m_cluster); },
                            [this] { return Result<Accounting*>(&m_accounting); }};
    Budget m_budget{"agent", 10h};
    unsigned char m_number = 0;
};

TEST(ParseBudget, TakesANameAndHours)
{
    EXPECT_EQ(parse_budget("agent:8").value(), (Budget{"agent", 8h}));
    EXPECT_EQ(parse_budget("night-2.a:0.5").value(), (Budget{"night-2.a", 30min}));
    EXPECT_EQ(parse_budget("none:0").value(), (Budget{"none", 0s}));
    for (const char* wrong : {"", "agent", "agent:", ":8", "agent:-1", "agent:8h", "agent:inf",
                              "agent:nan", "a/b:8", "../x:8", ".x:8", "a b:8", "agent:1e99"}) {
        EXPECT_EQ(parse_budget(wrong).error().kind, Error::Kind::usage) << wrong;
    }
    EXPECT_FALSE(parse_budget(std::string(65, 'a') + ":8"));
}

TEST_F(BudgetTest, ReservesWhatActiveRunsCanUse)
{
    const RunOnDisk one = run();
    const RunOnDisk two = run();
    const RunOnDisk three = run();
    EXPECT_TRUE(charge_for(one));
    EXPECT_TRUE(charge_for(two));
    EXPECT_EQ(use().reserved, 8h);
    EXPECT_EQ(use().left(), 2h);
    const auto refused = charge_for(three);
    EXPECT_EQ(refused.error().kind, Error::Kind::denied);
    EXPECT_THAT(refused.error().text, HasSubstr("of 10 GPU-hours, 0 are used and 8 reserved by "
                                                "active runs, and this could use 4"));
    EXPECT_EQ(use().reserved, 8h) << "a refusal changes nothing";
}

TEST_F(BudgetTest, CountsWhatEndedRunsHaveUsed)
{
    RunOnDisk one = run();
    EXPECT_TRUE(charge_for(one));
    end(one, 30min);
    EXPECT_EQ(use().used, 1h + 2s);
    EXPECT_EQ(use().reserved, 0h);
    m_store.files.erase(layout::run_json(one.key())); // as gpuq clean does
    EXPECT_EQ(use().used, 1h + 2s);
}

TEST_F(BudgetTest, CountsAllThatARunCouldUseWhileItsUseIsNotKnown)
{
    const RunOnDisk one = run().submitted(JobId{1});
    m_cluster.silent = true;
    EXPECT_TRUE(charge_for(one));
    EXPECT_EQ(use().reserved, 4h);
    m_store.files.erase(layout::run_json(one.key()));
    EXPECT_EQ(use().reserved, 4h);
    m_store.files[layout::budget_member("agent", one.key())] = "mo";
    EXPECT_EQ(use().reserved, 10h);
}

TEST_F(BudgetTest, IsNotRaisedLaterButMayBeLowered)
{
    const RunOnDisk one = run();
    EXPECT_TRUE(charge_for(one));
    m_budget.limit = 100h;
    EXPECT_EQ(use().limit, 10h);
    m_budget.limit = 5h;
    EXPECT_EQ(use().limit, 5h);
    EXPECT_FALSE(charge_for(run()));
}

TEST_F(BudgetTest, ChargesARunAgainWhenItIsExtended)
{
    const RunOnDisk one = run();
    EXPECT_TRUE(charge_for(one));
    EXPECT_TRUE(charge(m_sources, m_budget, one.key(), 9h));
    EXPECT_EQ(use().reserved, 9h);
    EXPECT_FALSE(charge(m_sources, m_budget, one.key(), 11h));
    EXPECT_EQ(use().reserved, 9h);
    discharge(m_store, m_budget, one.key());
    EXPECT_EQ(use().left(), 10h);
}

TEST_F(BudgetTest, CountsASweepByItsWorkers)
{
    const RunKey sweep = RunKey::make(m_clock.now(), {1, 2, 3, 4, 5, 6, 7, 8});
    put(layout::sweep_json(sweep), "{}");
    put(layout::active_sweep(sweep), "");
    EXPECT_TRUE(charge(m_sources, m_budget, sweep, 6h));
    EXPECT_EQ(use().reserved, 6h) << "no worker yet";
    for (int i = 0; i < 2; ++i) {
        RunOnDisk worker = run();
        put(layout::sweep_run(sweep, worker.key()), "");
        end(worker, 15min);
    }
    EXPECT_EQ(use().reserved, 6h) << "others may follow";
    m_store.files.erase(layout::active_sweep(sweep));
    EXPECT_EQ(use().used, 1h + 4s);
}

TEST_F(BudgetTest, ReservesTheTimeOfASweepThatIsRetried)
{
    const RunKey sweep = RunKey::make(m_clock.now(), {1, 2, 3, 4, 5, 6, 7, 8});
    put(layout::sweep_json(sweep), "{}");
    EXPECT_TRUE(charge(m_sources, m_budget, sweep, 6h));
    RunOnDisk worker = run();
    put(layout::sweep_run(sweep, worker.key()), "");
    end(worker, 15min);
    EXPECT_EQ(use().used, 30min + 2s);
    EXPECT_TRUE(charge(m_sources, m_budget, sweep, 6h)); // its old workers have ended
    put(layout::active_sweep(sweep), "");
    EXPECT_EQ(use().reserved, 6h);
    EXPECT_EQ(use().used, 0h);
}

TEST_F(BudgetTest, ForgetsTheUseOfARunThatIsActiveAgain)
{
    RunOnDisk one = run();
    EXPECT_TRUE(charge_for(one));
    end(one, 30min);
    EXPECT_EQ(use().used, 1h + 2s);
    put(layout::active(one.key()), ""); // gpuq resume
    m_store.files.erase(layout::journal(one.key(), LinkNumber{1}));
    m_cluster.silent = true;
    EXPECT_EQ(use().reserved, 4h);
    EXPECT_EQ(use().used, 0h);
}

TEST_F(BudgetTest, AsksSlurmOnceForAllMembers)
{
    for (std::uint32_t i = 1; i <= 2; ++i) {
        const RunOnDisk one = run().submitted(JobId{i});
        Job job;
        job.id = JobId{i};
        job.comment = job_comment(one.key());
        job.state = JobState::pending;
        job.batch = true;
        m_cluster.jobs.push_back(job);
        EXPECT_TRUE(charge_for(one));
    }
    m_cluster.requests.clear();
    EXPECT_EQ(use().reserved, 8h);
    EXPECT_THAT(m_cluster.requests, SizeIs(1));
}

} // namespace
} // namespace gpuq
