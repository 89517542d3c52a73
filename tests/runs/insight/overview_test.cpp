// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/overview.h"

#include "core/layout.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/fake_host.h"
#include "fakes/memory_store.h"
#include "fakes/now.h"
#include "ports/cluster.h"
#include "runs/insight/overview_record.h"
#include "runs/insight/own_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t k_me = 1000, k_other = 1001;
Inventory inventory()
{
    Inventory made;
    Partition queue;
    queue.name = "short";
    made.partitions = {queue};
    for (const char* name : {"n0", "n1"}) {
        Node node;
        node.name = name;
        node.gpus = {{"k80", 4, 3}};
        node.partitions = {"short"};
        node.cpus = 16;
        node.cpus_in_use = 6;
        made.nodes.push_back(node);
    }
    return made;
}

Job running(std::uint32_t id, std::uint32_t uid, const char* node, int gpus, Time ends)
{
    Job job;
    job.id = JobId{id};
    job.uid = uid;
    job.state = JobState::running;
    job.ends_at = ends;
    job.partition = "short";
    job.held.whole = {{node, "k80", gpus}};
    return job;
}

Job pending(std::uint32_t id, std::uint32_t uid, std::uint32_t priority)
{
    Job job;
    job.id = JobId{id};
    job.uid = uid;
    job.state = JobState::pending;
    job.partition = "short";
    job.priority = priority;
    job.reason = "Resources";
    job.gpus = 1;
    return job;
}

Overview overview()
{
    AllJobs all;
    all.jobs = {running(1, k_me, "n0", 2, k_now + 1h), running(2, k_other, "n1", 3, k_now + 10min),
                pending(3, k_other, 9), pending(4, k_me, 5)};
    return make_overview("centre", inventory(), all, k_me, k_now);
}

TEST(Overview, TellsMineFromOthers)
{
    const Overview made = overview();
    ASSERT_EQ(made.pools.size(), 1U);
    EXPECT_EQ(made.pools[0].mine, 2);
    EXPECT_EQ(made.pools[0].pool.in_use, 6);
    EXPECT_EQ(made.pools[0].next, k_now + 10min);
    EXPECT_EQ(made.waiting, (WaitingLine{2, 2}));
}

TEST(Overview, ForecastsWhenAGpuIsFreeIfNoneIs)
{
    EXPECT_FALSE(overview().pools.at(0).forecast) << "two are free";
    Inventory full = inventory();
    for (Node& node : full.nodes) {
        node.gpus[0].in_use = 4;
    }
    AllJobs all;
    all.jobs = {running(1, k_me, "n0", 4, k_now + 1h), running(2, k_other, "n1", 4, k_now + 10min)};
    all.complete = true;
    const Overview made = make_overview("centre", full, all, k_me, k_now);
    const auto& forecast = made.pools.at(0).forecast;
    ASSERT_TRUE(forecast && forecast->p50 && forecast->p90) << forecast->unknown;
    EXPECT_GT(*forecast->p50, k_now);
    EXPECT_LE(*forecast->p90, k_now + 11min) << "a job ends at its limit";
    fakes::MemoryStore store;
    (void)store.write(layout::overview("centre"), to_json(made));
    EXPECT_EQ(kept_overview(store, "centre").pools, made.pools);
}

/// As reported by slurmctld for some seconds after its start: jobs are known, allocated GPUs are
/// not.
TEST(Overview, DoesNotTakeGpusForFreeThatJobsHold)
{
    Inventory just_started = inventory();
    for (Node& node : just_started.nodes) {
        node.gpus[0].in_use = 0;
    }
    AllJobs all;
    all.jobs = {running(1, k_me, "n0", 2, k_now + 1h)};
    const Overview made = make_overview("centre", just_started, all, k_me, k_now);
    EXPECT_EQ(made.pools[0].mine, 2);
    EXPECT_FALSE(made.pools[0].pool.in_use);
    EXPECT_FALSE(made.pools[0].pool.free);
    EXPECT_FALSE(made.pools[0].nodes[1].in_use);
}

TEST(Overview, HasTheGpusOfEachNode)
{
    EXPECT_EQ(
        overview().pools.at(0).nodes,
        (std::vector<NodeUse>{{"n0", 4, 3, true, false, 0, 2}, {"n1", 4, 3, true, false, 0, 0}}));
}

TEST(Overview, HasOwnJobsAndTheirPlaces)
{
    const Overview made = overview();
    ASSERT_EQ(made.jobs.size(), 2U);
    EXPECT_EQ(made.jobs[1].job.id, JobId{4});
    EXPECT_EQ(made.jobs[1].ahead, 1);
}

TEST(Overview, HasAForecastForEachPendingJobOfTheUser)
{
    AllJobs all;
    all.jobs = {running(1, k_me, "n0", 4, k_now + 1h), running(2, k_other, "n1", 4, k_now + 10h),
                pending(3, k_other, 9), pending(4, k_me, 5)};
    for (Job& job : all.jobs) {
        job.size.gpus = {{"", 4}};
        job.walltime = 1h;
        job.nodes = job.held.whole.empty() ? "" : job.held.whole[0].node;
    }
    all.jobs[3].started_at = k_now + 2h; // also with a plan of Slurm
    const Overview made = make_overview("centre", inventory(), all, k_me, k_now);
    EXPECT_FALSE(made.jobs[0].forecast);
    ASSERT_TRUE(made.jobs[1].forecast && made.jobs[1].forecast->p90);
    EXPECT_GT(*made.jobs[1].forecast->p90, k_now);
    EXPECT_LE(*made.jobs[1].forecast->p50, *made.jobs[1].forecast->p90);
    EXPECT_EQ(overview_from_json(to_json(made))->jobs, made.jobs);
}

TEST(Overview, HasAForecastBehindALongQueue)
{
    AllJobs all;
    all.jobs = {pending(1, k_me, 5)};
    for (std::uint32_t i = 2; i <= 2000; ++i) {
        all.jobs.push_back(pending(i, k_other, 9));
    }
    EXPECT_TRUE(make_overview("centre", inventory(), all, k_me, k_now).jobs[0].forecast);
}

TEST(Overview, KeepsItsForecastsToCompareThemWithTheStarts)
{
    AllJobs all;
    all.jobs = {running(1, k_other, "n0", 4, k_now + 1h), running(2, k_other, "n1", 4, k_now + 10h),
                pending(3, k_me, 9)};
    for (Job& job : all.jobs) {
        job.size.gpus = {{"", 4}};
        job.walltime = 1h;
        job.nodes = job.held.whole.empty() ? "" : job.held.whole[0].node;
    }
    const Overview made = make_overview("centre", inventory(), all, k_me, k_now);
    const Overview read = *overview_from_json(to_json(made));
    ASSERT_EQ(read.run_times.calibration.checks.size(), 1U);
    EXPECT_EQ(read.run_times, made.run_times);
    const Time late = *made.jobs[0].forecast->p90 + 1min;
    const Overview next = make_overview("centre", inventory(), all, k_me, late, read.run_times);
    EXPECT_GT(next.run_times.calibration.p50, 0.5);
    EXPECT_GT(next.run_times.calibration.p90, 0.9);
}

TEST(Overview, RemembersHowMuchOfTheirLimitsJobsUsed)
{
    AllJobs all;
    all.jobs = {running(1, k_other, "n0", 4, k_now - 10s)};
    all.jobs[0].state = JobState::completed;
    all.jobs[0].started_at = k_now - 10min;
    all.jobs[0].walltime = 1h;
    Job old = all.jobs[0];
    old.ends_at = k_now - 5min; // the oldest that Slurm keeps
    all.jobs.push_back(old);
    const Overview first = make_overview("centre", inventory(), all, k_me, k_now);
    EXPECT_EQ(first.run_times.ended(), 1);
    const auto read = overview_from_json(to_json(first));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->run_times, first.run_times);
    all.jobs[0].ends_at = k_now + 20s;
    const Overview second =
        make_overview("centre", inventory(), all, k_me, k_now + 30s, read->run_times);
    EXPECT_NEAR(second.run_times.ended(), 2, 1e-4);
}

TEST(Overview, HasNoPlaceInALineThatItCanNotSee)
{
    AllJobs all;
    all.jobs = {pending(4, k_me, 5)};
    all.complete = false;
    const Overview made = make_overview("centre", inventory(), all, k_me, k_now);
    EXPECT_FALSE(made.waiting);
    EXPECT_FALSE(made.jobs[0].ahead);
}

TEST(Due, KeepsToItsBudget)
{
    Overview known = overview();
    known.asked_at = k_now;
    EXPECT_EQ(due(Overview{}, k_me, k_now), Due::first);
    EXPECT_EQ(due(known, k_me, k_now + 14s), Due::nothing);
    EXPECT_EQ(due(known, k_me, k_now + 15s), Due::own_jobs);
    EXPECT_EQ(due(known, k_me, k_now + 30s), Due::nodes);
    EXPECT_EQ(due(known, k_me, k_now + 180s), Due::all);
    known.jobs.pop_back(); // no own job is pending
    EXPECT_EQ(due(known, k_me, k_now + 29s), Due::nothing);
    known.asked_at = k_now + 280s;
    known.at = k_now + 290s;
    EXPECT_EQ(due(known, k_me, k_now + 299s), Due::nothing);
    EXPECT_EQ(due(known, k_me, k_now + 300s), Due::all);
    known.asked_at = k_now + 380s;
    known.at = k_now + 390s;
    known.took = 20s; // a busy controller is queried less often
    EXPECT_EQ(due(known, k_me, k_now + 399s), Due::nothing);
    EXPECT_EQ(due(known, k_me, k_now + 400s), Due::all);
    EXPECT_EQ(due(known, k_me, k_now - 1s), Due::first); // the clock was set back
}

TEST(Due, DoesNotHammerASilentSlurm)
{
    Overview silent;
    silent.asked_at = k_now;
    silent.silent = "no answer";
    EXPECT_EQ(due(silent, k_me, k_now + 14s), Due::nothing);
    EXPECT_EQ(due(silent, k_me, k_now + 15s), Due::all);
}

TEST(Due, AfterAFirstLookEachUserHasATurnForTheJobsOfAll)
{
    Overview first = overview();
    first.asked_at = k_now;
    first.whole_at.reset();
    EXPECT_EQ(due(first, k_me, k_now + 2s), Due::nothing);
    EXPECT_EQ(due(first, k_me, k_now + 3s), Due::all);
    EXPECT_EQ(due(first, k_other, k_now + 3s), Due::nothing);
    EXPECT_EQ(due(first, k_other, k_now + 5s), Due::all);
    first.silent = "no answer";
    EXPECT_EQ(due(first, k_other, k_now + 5s), Due::nothing);
    EXPECT_EQ(due(first, k_other, k_now + 181s), Due::first); // no client has asked since then
}

class Refreshed : public testing::Test {
protected:
    void refresh(Wish::Anew anew = Wish::Anew::no)
    {
        refresh_overview(store, cluster, host, clock, k_me, {began, anew});
    }
    void refresh_whole()
    {
        refresh();
        clock.advance(5s);
        refresh();
    }
    Overview kept() { return kept_overview(store, *cluster.name()); }

    fakes::MemoryStore store;
    fakes::FakeCluster cluster;
    fakes::FakeHost host;
    fakes::FakeClock clock;
    Time began = clock.now();
};

TEST_F(Refreshed, IsKeptForTheOthers)
{
    EXPECT_FALSE(kept().at);
    refresh();
    const Overview first = kept();
    EXPECT_TRUE(first.at);
    EXPECT_EQ(first.silent, "");
    const auto requests = cluster.requests.size();
    refresh();
    EXPECT_EQ(cluster.requests.size(), requests);
    EXPECT_EQ(kept().asked_at, first.asked_at);
}

class RefreshedPools : public Refreshed {
protected:
    RefreshedPools()
    {
        cluster.queues = inventory().partitions;
        cluster.machines = inventory().nodes;
    }
    /// Jobs of this length take all GPUs.
    void fill(std::chrono::minutes length)
    {
        cluster.jobs = {running(1, k_other, "n0", 4, clock.now() + length),
                        running(2, k_other, "n1", 4, clock.now() + length)};
        for (Node& node : cluster.machines) {
            node.gpus[0].in_use = 4;
        }
    }
    /// After a full query.
    std::optional<StartForecast> forecast()
    {
        refresh_overview(store, cluster, host, clock, k_me, {began, Wish::Anew::always}, m_reader);
        return kept().pools.at(0).forecast;
    }

private:
    KeptOverview m_reader;
};

TEST_F(RefreshedPools, AreForecastOnceAMinute)
{
    fill(10min);
    const auto first = forecast();
    ASSERT_TRUE(first && first->p90);
    clock.advance(30s);
    fill(60min);
    EXPECT_EQ(forecast(), first);
    clock.advance(30s);
    EXPECT_NE(forecast(), first);
}

TEST_F(RefreshedPools, AreForecastAtOnceWhenTheyBecomeFull)
{
    EXPECT_FALSE(forecast());
    clock.advance(10s);
    fill(10min);
    EXPECT_TRUE(forecast());
}

TEST_F(Refreshed, LeavesTheAskingToWhoeverHoldsIt)
{
    refresh();
    clock.advance(61s);
    host.held_by_others.insert(asks_as(store, *cluster.name()));
    const auto requests = cluster.requests.size();
    refresh();
    EXPECT_EQ(cluster.requests.size(), requests);
    clock.advance(180s); // the process that holds it sends no query: it is stopped
    refresh();
    EXPECT_GT(cluster.requests.size(), requests);
}

TEST_F(Refreshed, BeginsWithWhatAFirstScreenNeeds)
{
    refresh();
    EXPECT_THAT(cluster.requests, testing::Not(testing::Contains("all_jobs")));
    EXPECT_TRUE(kept().at);
    EXPECT_TRUE(kept().jobs_at);
    EXPECT_FALSE(kept().whole_at);
    clock.advance(5s);
    refresh();
    EXPECT_TRUE(kept().whole_at);
}

/// As seen in a trial: `4 in use; 2 jobs wait for 6 GPUs`, one of which had the four.
TEST_F(Refreshed, CountsTheUsersJobsInTheLineAsTheyAreNow)
{
    cluster.jobs = {pending(3, k_other, 9), pending(4, k_me, 5)};
    cluster.jobs[0].gpus = 2;
    cluster.jobs[1].gpus = 4;
    refresh_whole();
    const Overview before = kept();
    ASSERT_EQ(before.waiting, (WaitingLine{2, 6}));
    cluster.jobs.erase(cluster.jobs.begin()); // it is not the user's
    cluster.jobs[0].state = JobState::running;
    clock.advance(15s);
    refresh();
    EXPECT_EQ(kept().whole_at, before.whole_at);
    EXPECT_EQ(kept().waiting, (WaitingLine{1, 2}));
}

TEST_F(Refreshed, OfAnotherDayKeepsOnlyWhatIsNotAnswered)
{
    refresh_whole();
    clock.advance(24h);
    cluster.silent = true;
    refresh();
    EXPECT_TRUE(kept().whole_at);
    EXPECT_NE(kept().silent, "");
    clock.advance(24h);
    cluster.silent = false;
    refresh();
    EXPECT_EQ(kept().silent, "");
    EXPECT_EQ(kept().at, kept().asked_at);
    EXPECT_FALSE(kept().whole_at);
}

TEST_F(Refreshed, AsksMoreOftenForNodesThanForEverybodysJobs)
{
    refresh_whole();
    const Overview first = kept();
    ASSERT_TRUE(first.whole_at);
    cluster.requests.clear();
    clock.advance(31s);
    refresh();
    EXPECT_THAT(cluster.requests, testing::Not(testing::Contains("all_jobs")));
    EXPECT_FALSE(cluster.requests.empty());
    EXPECT_EQ(kept().whole_at, first.whole_at);
    EXPECT_GT(kept().at, first.at);
}

/// Own jobs are refreshed together with the GPUs in use: never shown as other users' for minutes.
TEST_F(Refreshed, AJobOfOnesOwnIsMineWithTheNextLookAtNodes)
{
    cluster.machines = inventory().nodes;
    refresh_whole();
    ASSERT_EQ(kept().pools.at(0).mine, 0);
    cluster.jobs.push_back(running(7, k_me, "n0", 3, clock.now() + 1h));
    cluster.requests.clear();
    clock.advance(31s);
    refresh();
    EXPECT_THAT(cluster.requests, testing::Not(testing::Contains("all_jobs")));
    EXPECT_EQ(kept().pools.at(0).mine, 3);
    clock.advance(31s);
    cluster.jobs.clear();
    refresh();
    EXPECT_EQ(kept().pools.at(0).mine, 0);
}

TEST_F(Refreshed, KeepsTheHoldersOfOthersUntilTheNextWholeLook)
{
    cluster.machines = inventory().nodes;
    cluster.jobs = {running(1, k_other, "n1", 2, clock.now() + 1h)};
    refresh_whole();
    ASSERT_EQ(kept().holdings.size(), 1U);
    const Holding others = kept().holdings.front();
    const auto query_own = [&](std::vector<Job> own) {
        own_jobs_now(store, cluster, clock, own);
        cluster.jobs = std::move(own);
        clock.advance(31s);
        refresh();
    };
    Overview known = kept();
    known.jobs.clear(); // FakeCluster returns the jobs of all users as the user's own
    ASSERT_TRUE(store.write(layout::overview(*cluster.name()), to_json(known)));
    query_own({running(7, k_me, "n0", 3, clock.now() + 1h)});
    ASSERT_EQ(kept().holdings.size(), 2U);
    EXPECT_EQ(kept().holdings[0].job, JobId{7});
    EXPECT_EQ(kept().holdings[0].uid, k_me);
    EXPECT_EQ(kept().holdings[1], others);
    query_own({});
    EXPECT_EQ(kept().holdings, std::vector<Holding>{others});
}

TEST_F(Refreshed, KeepsTheReservationsOfGpus)
{
    cluster.machines = inventory().nodes;
    cluster.kept = {
        {"gpuq:ada:ml", clock.now(), clock.now() + 1h, "n0", "short", {"ben"}, {"lab"}}};
    refresh_whole();
    const auto expected = reserved_gpus(cluster.kept, cluster.machines);
    ASSERT_EQ(expected.size(), 1U);
    EXPECT_EQ(kept().reserved, expected);
    clock.advance(31s);
    refresh(); // nodes only
    EXPECT_EQ(kept().reserved, expected);
}

TEST_F(Refreshed, DoesNotWaitForEverForAFirstAnswer)
{
    host.held_by_others.insert(asks_as(store, *cluster.name()));
    refresh();
    EXPECT_TRUE(cluster.requests.empty());
    clock.advance(11s);
    refresh();
    EXPECT_FALSE(cluster.requests.empty());
}

TEST_F(Refreshed, KeepsTheOldAnswerWhenThereIsNoNewOne)
{
    refresh();
    const auto before = kept();
    clock.advance(61s);
    cluster.silent = true;
    refresh();
    EXPECT_NE(kept().silent, "");
    EXPECT_EQ(kept().at, before.at);
}

TEST_F(Refreshed, IsTheSameForACallerThatReadsItAgainAndAgain)
{
    KeptOverview read;
    EXPECT_FALSE(read.read(store, *cluster.name()).at);
    refresh();
    EXPECT_EQ(read.read(store, *cluster.name()).at, kept().at);
    clock.advance(31s);
    refresh();
    EXPECT_EQ(read.read(store, *cluster.name()).at, clock.now());
    EXPECT_EQ(read.read(store, *cluster.name()).at, clock.now());
    ASSERT_TRUE(store.write(layout::overview(*cluster.name()), "{"));
    EXPECT_FALSE(read.read(store, *cluster.name()).at);
}

TEST_F(Refreshed, AFileThatIsNoOverviewIsNone)
{
    for (const char* text : {"", "{", "[]", R"({"v":1})", R"({"v":99,"cluster":"x"})"}) {
        ASSERT_TRUE(store.write(layout::overview(*cluster.name()), text));
        EXPECT_FALSE(kept().at) << text;
    }
}

/// A run with job `id` on n0, as recorded on disk.
RunStatus on_disk(std::uint32_t id, RunState state, Time since, int gpus = 2)
{
    RunStatus run{RunKey::make(k_now, {1, 2, 3, 4, 5, 6, 7, static_cast<unsigned char>(id)})};
    run.run = Run{run.key};
    run.run->request.gpus.count = gpus;
    run.job = LinkJob{"centre", JobId{id}, k_now - 1min, true};
    run.state = state;
    run.queue = "short";
    run.host = "n0";
    run.started_at = since;
    if (state == RunState::ended) {
        run.ending = Ending{0, Cause::finished, "", since};
    }
    return run;
}

Overview idle_machine()
{
    Inventory idle = inventory();
    for (Node& node : idle.nodes) {
        node.gpus[0].in_use = 0;
        node.cpus_in_use = 0;
    }
    return make_overview("centre", idle, {}, k_me, k_now);
}

/// As seen in a live trial: `4 free, 0 mine` above a list with two running runs.
TEST(WithOwnRuns, GpusOfARunThatHasStartedSinceAreMineAndNotFree)
{
    ASSERT_EQ(idle_machine().pools[0].pool.free, 8);
    const Overview now =
        with_own_runs(idle_machine(), {on_disk(7, RunState::running, k_now + 3s),
                                       on_disk(8, RunState::running, k_now + 4s, 1)});
    EXPECT_EQ(now.pools[0].mine, 3);
    EXPECT_EQ(now.pools[0].pool.free, 5);
    EXPECT_EQ(now.pools[0].pool.in_use, 3);
}

TEST(WithOwnRuns, GpusOfARunThatHasEndedSinceAreFreeAgain)
{
    const Overview before = overview();
    ASSERT_EQ(before.pools[0].mine, 2);
    const Overview now = with_own_runs(before, {on_disk(1, RunState::ended, k_now + 3s)});
    EXPECT_EQ(now.pools[0].mine, 0);
    EXPECT_EQ(now.pools[0].pool.free, *before.pools[0].pool.free + 2);
    EXPECT_EQ(now.pools[0].pool.in_use, 4);
}

TEST(WithOwnRuns, KnowsTheNextFreeGpuBeforeAllJobsAreQueriedAgain)
{
    RunStatus run = on_disk(7, RunState::running, k_now + 3s);
    run.ends_at = k_now + 30min;
    RunStatus longer = on_disk(8, RunState::running, k_now + 3s);
    longer.ends_at = k_now + 1h;
    ASSERT_FALSE(idle_machine().pools[0].next);
    EXPECT_EQ(with_own_runs(idle_machine(), {longer, run}).pools[0].next, k_now + 30min);
    Overview drained = idle_machine();
    drained.pools[0].nodes[0].up = false;
    EXPECT_FALSE(with_own_runs(drained, {run}).pools[0].next);
    ASSERT_EQ(overview().pools[0].next, k_now + 10min) << "another user's job";
    EXPECT_EQ(with_own_runs(overview(), {run}).pools[0].next, k_now + 10min);
}

TEST(WithOwnRuns, MovesTheGpusOfItsNodeAndItsHolding)
{
    const Overview now = with_own_runs(overview(), {on_disk(1, RunState::ended, k_now + 3s),
                                                    on_disk(7, RunState::running, k_now)});
    EXPECT_EQ(now.pools[0].nodes[0], (NodeUse{"n0", 4, 3, true, false, 0, 2}));
    ASSERT_EQ(now.holdings.size(), 2U);
    EXPECT_EQ(now.holdings[0], (Holding{"n0", "k80", 2, JobId{7}, "", k_me, k_now, {}}));
    EXPECT_EQ(now.holdings[1].job, JobId{2});
}

/// A node that accepts no new jobs has no free GPUs when a job on it ends.
TEST(WithOwnRuns, GpusOfARunThatHasEndedOnADrainedNodeAreDown)
{
    Overview before = overview();
    before.pools[0].nodes[0].up = false;
    const Overview now = with_own_runs(before, {on_disk(1, RunState::ended, k_now + 3s)});
    EXPECT_EQ(now.pools[0].pool.free, 1);
    EXPECT_EQ(now.pools[0].pool.down, 3);
    EXPECT_EQ(now.pools[0].pool.most_on_one_node, 1);
}

TEST(WithOwnRuns, AGpuWithSharesOfTheUserIsMineOnceAndNotFreeWhenTheyEnd)
{
    Overview before = idle_machine();
    before.pools[0].nodes[0].in_use = 2; // the second one has shares of others only
    before.pools[0].pool.in_use = 2;
    before.pools[0].pool.free = 6;
    for (const std::uint32_t id : {1U, 2U}) {
        OwnJob own;
        own.job.id = JobId{id};
        own.job.state = JobState::running;
        own.job.held.shares = {{"n0", "k80", GpuShare::Kind::shard, 1, {0}}};
        before.jobs.push_back(own);
    }
    const Overview now = with_own_runs(before, {});
    EXPECT_EQ(now.pools[0].mine, 1);
    EXPECT_EQ(now.pools[0].nodes[0].mine, 1);
    EXPECT_EQ(now.pools[0].pool.in_use, 2);
    before.jobs.clear();
    const Overview later = with_own_runs(before, {});
    EXPECT_EQ(later.pools[0].mine, 0);
    EXPECT_EQ(later.pools[0].pool.in_use, 2) << "others may hold shares of it";
}

/// On a node without another free GPU.
TEST(WithOwnRuns, TheNextLinkHasTheGpusOfTheOneBefore)
{
    RunStatus run = on_disk(7, RunState::running, k_now + 3s, 4);
    Overview before = idle_machine();
    OwnJob first;
    first.job = running(1, k_me, "n0", 4, k_now + 10min);
    first.job.comment = job_comment(run.key);
    before.jobs = {first};
    before.pools[0].mine = before.pools[0].nodes[0].mine = 4;
    before.holdings = {{"n0", "k80", 4, JobId{1}, "", k_me, k_now - 1h, {}}};
    const Overview now = with_own_runs(before, {run});
    EXPECT_EQ(now.pools[0].mine, 4);
    EXPECT_EQ(now.pools[0].nodes[0].mine, 4);
    ASSERT_EQ(now.holdings.size(), 1U);
    EXPECT_EQ(now.holdings[0].job, JobId{7});
}

/// A plain job has ended, and a run has started on its GPUs.
TEST(WithOwnRuns, NoMoreGpusOfANodeAreMineThanItHas)
{
    Overview before = idle_machine();
    OwnJob plain;
    plain.job = running(1, k_me, "n0", 4, k_now + 10min);
    before.jobs = {plain};
    const Overview now = with_own_runs(before, {on_disk(7, RunState::running, k_now + 3s, 3)});
    EXPECT_EQ(now.pools[0].mine, 4);
    EXPECT_EQ(now.pools[0].nodes[0].mine, 4);
}

TEST(WithOwnRuns, GpusOfARunOnUnknownNodesCountInThePool)
{
    RunStatus run = on_disk(7, RunState::running, k_now + 3s);
    run.run->request.nodes = 2;
    const Overview now = with_own_runs(idle_machine(), {run});
    EXPECT_EQ(now.pools[0].pool.free, 4);
    EXPECT_EQ(now.pools[0].pool.in_use, 4);
    EXPECT_EQ(now.pools[0].nodes[0].mine, 2);
    EXPECT_EQ(now.pools[0].nodes[1].in_use, 0);
}

TEST(WithOwnRuns, LeavesAloneWhatSlurmHasCountedAlready)
{
    const Overview before = overview();
    const Overview now = with_own_runs(before, {on_disk(1, RunState::running, k_now - 1min)});
    EXPECT_EQ(now.pools, before.pools);
    EXPECT_EQ(with_own_runs(before, {}).pools, before.pools);
}

TEST(WithOwnRuns, OneThatHasStartedWaitsNoMore)
{
    Overview before = overview();
    const Overview now = with_own_runs(before, {on_disk(4, RunState::running, k_now + 1s, 1)});
    EXPECT_EQ(now.waiting, (WaitingLine{1, 1}));
    EXPECT_EQ(now.pools[0].mine, 3);
}

/// Jobs are queried more often than nodes.
TEST_F(Refreshed, ANewerAnswerAboutJobsMovesTheirGpusToo)
{
    cluster.machines = inventory().nodes;
    Partition queue;
    queue.name = "short";
    cluster.queues = {queue};
    cluster.jobs = {pending(7, k_me, 3)};
    refresh_whole();
    const int free = *kept().pools.at(0).pool.free;
    cluster.jobs = {running(7, k_me, "n0", 1, clock.now() + 1h), pending(8, k_me, 3)};
    clock.advance(16s);
    cluster.requests.clear();
    refresh();
    EXPECT_THAT(cluster.requests, testing::ElementsAre("own_jobs"));
    const Overview now = with_own_runs(kept(), {});
    EXPECT_EQ(now.pools.at(0).mine, 1);
    EXPECT_EQ(now.pools.at(0).pool.free, free - 1);
}

TEST_F(Refreshed, HasAnEstimateOfTheStartWhereSlurmHasNone)
{
    cluster.machines = inventory().nodes;
    for (Node& node : cluster.machines) {
        node.gpus[0].in_use = 0;
    }
    Partition queue;
    queue.name = "short";
    cluster.queues = {queue};
    Job first = running(1, k_other, "n0", 4, clock.now() + 10min);
    Job second = running(2, k_other, "n1", 4, clock.now() + 20min);
    Job mine = pending(7, k_me, 3);
    mine.size.gpus = {{"", 4}};
    cluster.jobs = {first, second, mine};
    refresh_whole();
    const auto found = [&] {
        return kept().jobs.empty() ? std::nullopt : kept().jobs.back().estimate;
    };
    ASSERT_TRUE(found());
    EXPECT_EQ(found()->at, std::chrono::floor<std::chrono::seconds>(clock.now() + 10min - 5s));
    EXPECT_EQ(found()->after, JobId{1});
    clock.advance(16s);
    refresh();
    EXPECT_TRUE(found()) << "kept while only own jobs are asked for";
}

/// Own jobs, as queried by a command.
class OwnJobsNow : public Refreshed {
protected:
    OwnJobs ask() { return own_jobs_now(store, cluster, clock); }
    auto questions()
    {
        return std::count(cluster.requests.begin(), cluster.requests.end(), "own_jobs");
    }
};

TEST_F(OwnJobsNow, HasWhatWasSubmittedAMomentAgo)
{
    cluster.jobs = {pending(7, k_me, 3)};
    EXPECT_EQ(ask().jobs.size(), 1U);
    cluster.jobs.push_back(pending(8, k_me, 3));
    EXPECT_EQ(ask().jobs.size(), 2U);
}

TEST_F(OwnJobsNow, HasAnAllowanceForThoseWhoAskAllTheTime)
{
    for (int second = 0; second < 300; ++second) {
        ask();
        ask();
        clock.advance(1s);
    }
    EXPECT_LE(questions(), 10 + 60);
    EXPECT_GE(questions(), 60);
    EXPECT_TRUE(ask().at) << "what is kept";
    clock.advance(10s);
    EXPECT_EQ(ask().at, clock.now());
}

TEST_F(OwnJobsNow, TakesAnAnswerThatTheCallerHas)
{
    const OwnJobs own = own_jobs_now(store, cluster, clock, std::vector<Job>{pending(7, k_me, 3)});
    EXPECT_EQ(own.jobs.size(), 1U);
    EXPECT_EQ(own.at, clock.now());
    EXPECT_EQ(questions(), 0);
}

TEST_F(OwnJobsNow, DoesNotWaitAgainForASlurmThatHasJustBeenSilent)
{
    ask();
    clock.advance(2s);
    cluster.silent = true;
    EXPECT_NE(ask().silent, "");
    const auto requests = questions();
    clock.advance(5s);
    const OwnJobs unknown = ask();
    EXPECT_NE(unknown.silent, "");
    EXPECT_EQ(questions(), requests);
    clock.advance(60s);
    cluster.silent = false;
    EXPECT_EQ(ask().silent, "");
}

TEST_F(OwnJobsNow, KeepsHostileNames)
{
    Job job = pending(7, k_me, 3);
    job.name = "\xff\x1b[2J\"}";
    job.comment = "gpuq:../../x";
    cluster.jobs = {job};
    ask();
    clock.advance(1ms);
    EXPECT_EQ(ask().jobs.size(), 1U);
}

TEST(Complete, SaysWhatTheDiskCanNot)
{
    const RunKey key = RunKey::make(k_now, {1, 2, 3, 4, 5, 6, 7, 8});
    RunStatus status{key};
    status.job = LinkJob{"centre", JobId{4}, k_now, true};
    complete(status, overview());
    EXPECT_EQ(status.state, RunState::waiting);
    EXPECT_EQ(status.reason, "Resources");
    RunStatus younger{key};
    younger.job = LinkJob{"centre", JobId{99}, k_now, true};
    complete(younger, overview());
    EXPECT_EQ(younger.state, RunState::waiting); // submitted after the last query
    RunStatus older{key};
    older.job = LinkJob{"centre", JobId{99}, k_now - 10min, true};
    complete(older, overview());
    EXPECT_EQ(older.state, RunState::unknown); // its absence proves nothing
}

} // namespace
} // namespace gpuq
