// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/query_status.h"

#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/memory_store.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "runs/evidence.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class QueryStatus : public ::testing::Test {
protected:
    fakes::MemoryStore m_store;
    fakes::FakeClock m_clock;
    fakes::FakeCluster m_cluster;
    fakes::FakeAccounting m_accounting;
    StatusSources m_services{m_store, m_clock, [this] { return Result<Cluster*>(&m_cluster); },
                             [this] { return Result<Accounting*>(&m_accounting); }};

    RunOnDisk run(const std::string& name = "train", std::chrono::seconds age = 10min)
    {
        return RunOnDisk(m_store, fakes::some_run(m_clock.now() - age, name, ++m_number));
    }

    Job& job(const RunKey& key, std::uint32_t id, JobState state, bool batch = true)
    {
        Job job;
        job.id = JobId{id};
        job.comment = job_comment(key);
        job.state = state;
        job.batch = batch;
        job.started_at = m_clock.now() - 5min;
        m_cluster.jobs.push_back(job);
        return m_cluster.jobs.back();
    }

    bool is_active(const RunKey& key) { return m_store.files.contains(layout::active(key)); }

    unsigned char m_number = 0;
};

TEST_F(QueryStatus, NeedsNoSlurmWhileEveryRunShowsLife)
{
    const RunOnDisk one = run().submitted(JobId{1}).started(JobId{1}, m_clock.now());
    const RunOnDisk two = run().submitted(JobId{2}).ended({0, Cause::finished, "", m_clock.now()});
    const RunStatuses statuses = query_status(m_services, {one.key(), two.key()});
    EXPECT_EQ(statuses.runs[0].state, RunState::running);
    EXPECT_EQ(statuses.runs[1].state, RunState::ended);
    EXPECT_THAT(m_cluster.requests, IsEmpty());
    EXPECT_TRUE(is_active(one.key()));
    EXPECT_FALSE(is_active(two.key()));
}

TEST_F(QueryStatus, AsksSlurmOnceForAllRuns)
{
    const RunOnDisk one = run().submitted(JobId{1});
    const RunOnDisk two = run().submitted(JobId{2});
    job(one.key(), 1, JobState::pending);
    job(two.key(), 2, JobState::running);
    const RunStatuses statuses = query_status(m_services, {one.key(), two.key()});
    EXPECT_EQ(statuses.runs[0].state, RunState::waiting);
    EXPECT_EQ(statuses.runs[1].state, RunState::running);
    EXPECT_THAT(m_cluster.requests, ElementsAre("own_jobs"));
    EXPECT_THAT(m_accounting.requests, IsEmpty());
    EXPECT_EQ(statuses.slurm_silent, "");
}

TEST_F(QueryStatus, AsksNobodyWhenToldSo)
{
    const RunOnDisk one = run().submitted(JobId{1});
    EXPECT_EQ(query_run(m_services, one.key(), SlurmQuery::never).state, RunState::unknown);
    EXPECT_THAT(m_cluster.requests, IsEmpty());
}

TEST_F(QueryStatus, SaysThatSlurmIsSilentAndEndsNothing)
{
    const RunOnDisk one = run().submitted(JobId{1});
    m_cluster.silent = true;
    const RunStatuses statuses = query_status(m_services, {one.key()});
    EXPECT_EQ(statuses.runs[0].state, RunState::unknown);
    EXPECT_EQ(statuses.slurm_silent, "Slurm does not answer");
    EXPECT_TRUE(is_active(one.key()));
    EXPECT_FALSE(m_store.files.contains(layout::ended_json(one.key())));
}

TEST_F(QueryStatus, AdoptsAJobWhoseAnswerWasLost)
{
    const RunOnDisk one = run();
    job(one.key(), 9, JobState::pending);
    EXPECT_EQ(query_run(m_services, one.key()).job->job, JobId{9});
    const LinkJob written =
        link_job_from_json(m_store.read(layout::job_json(one.key(), LinkNumber{1})).value())
            .value();
    EXPECT_EQ(written.job, JobId{9});
    EXPECT_EQ(written.cluster, "lab");
    EXPECT_TRUE(written.batch);
    EXPECT_EQ(m_store.read(layout::job_index("lab", JobId{9})).value(), one.key().text() + "\n");
}

TEST_F(QueryStatus, AdoptsTheLivingOneOfSeveralJobs)
{
    const RunOnDisk one = run();
    job(one.key(), 8, JobState::pending).comment += " busy=1 idle=2 unknown=3";
    job(one.key(), 9, JobState::cancelled);
    EXPECT_EQ(query_run(m_services, one.key()).job->job, JobId{8});
}

TEST_F(QueryStatus, BelievesTheSupervisorAboutItsJob)
{
    const RunOnDisk one = run().started(JobId{5}, m_clock.now());
    EXPECT_EQ(query_run(m_services, one.key()).job->job, JobId{5});
    EXPECT_TRUE(m_store.files.contains(layout::job_index("lab", JobId{5})));
    EXPECT_THAT(m_cluster.requests, IsEmpty());
}

TEST_F(QueryStatus, EndsAnAllocationThatNeverHadASupervisor)
{
    const RunOnDisk one = run();
    job(one.key(), 9, JobState::running, /*batch=*/false);
    EXPECT_EQ(query_run(m_services, one.key()).state, RunState::running) << "its step runs";
    m_cluster.stepless.insert(JobId{9});
    m_cluster.requests.clear();
    const RunStatus status = query_run(m_services, one.key());
    ASSERT_EQ(status.state, RunState::ended);
    EXPECT_EQ(status.ending->detail, "its supervisor never started");
    EXPECT_THAT(m_cluster.requests, ElementsAre("own_jobs", "has_first_step 9", "complete 9 119"));
    EXPECT_TRUE(m_store.files.contains(layout::ended_json(one.key())));
    EXPECT_FALSE(is_active(one.key()));
}

TEST_F(QueryStatus, EndsAnAllocationWhoseSupervisorIsGone)
{
    const RunOnDisk one = run().submitted(JobId{9}).started(JobId{9}, m_clock.now() - 20s);
    job(one.key(), 9, JobState::running, /*batch=*/false);
    EXPECT_EQ(query_run(m_services, one.key()).state, RunState::running) << "its step runs";
    m_cluster.stepless.insert(JobId{9});
    m_cluster.requests.clear();
    const RunStatus status = query_run(m_services, one.key());
    EXPECT_EQ(status.state, RunState::ended);
    EXPECT_EQ(status.ending->status, 119);
    EXPECT_EQ(status.ending->detail, "its supervisor died");
    EXPECT_THAT(m_cluster.requests, ElementsAre("own_jobs", "has_first_step 9", "complete 9 119"));
    EXPECT_FALSE(is_active(one.key()));
}

TEST_F(QueryStatus, SparesAnAllocationWhenTheFolderTakesNoBytes)
{
    const RunOnDisk one = run();
    job(one.key(), 9, JobState::running, /*batch=*/false);
    m_cluster.stepless.insert(JobId{9});
    m_store.full = true;
    EXPECT_EQ(query_run(m_services, one.key()).state, RunState::running);
    EXPECT_THAT(m_cluster.requests, ElementsAre("own_jobs", "has_first_step 9"));
}

/// A file server that is away for a moment: the records of healthy runs can't be read.
TEST_F(QueryStatus, RepairsNothingWhileRecordsCannotBeRead)
{
    const RunOnDisk one = run().submitted(JobId{9}).started(JobId{9}, m_clock.now() - 10min);
    job(one.key(), 9, JobState::running, /*batch=*/false);
    m_cluster.stepless.insert(JobId{9});
    const auto files = m_store.files;
    for (const std::string& path :
         {layout::run_dir(one.key()), layout::run_json(one.key()),
          layout::journal(one.key(), LinkNumber{1}), layout::job_json(one.key(), LinkNumber{1}),
          layout::heartbeat(one.key(), LinkNumber{1})}) {
        SCOPED_TRACE(path);
        m_store.unreadable = {path};
        for (const JobState state : {JobState::running, JobState::completed, JobState::node_fail}) {
            m_cluster.jobs[0].state = state;
            m_cluster.requests.clear();
            const RunStatus status = query_run(m_services, one.key());
            EXPECT_EQ(status.state, RunState::unknown);
            EXPECT_THAT(status.why_unknown, testing::HasSubstr("Input/output error"));
            EXPECT_THAT(m_cluster.requests,
                        testing::Each(testing::AnyOf("own_jobs", "has_first_step 9")));
            EXPECT_EQ(m_store.files, files);
        }
    }
}

TEST_F(QueryStatus, WritesDownAnEndThatOnlySlurmKnows)
{
    const RunOnDisk one = run().submitted(JobId{1});
    job(one.key(), 1, JobState::node_fail);
    EXPECT_EQ(query_run(m_services, one.key()).ending->cause, Cause::node_failed);
    EXPECT_FALSE(is_active(one.key()));
    m_cluster.requests.clear();
    m_cluster.jobs.clear();
    EXPECT_EQ(query_run(m_services, one.key()).ending->cause, Cause::node_failed);
    EXPECT_THAT(m_cluster.requests, IsEmpty());
}

TEST_F(QueryStatus, KeepsARunActiveUntilItIsKnownHowItEnded)
{
    const RunOnDisk one = run().submitted(JobId{1});
    m_accounting.silent = true;
    const RunStatus status = query_run(m_services, one.key());
    EXPECT_EQ(status.state, RunState::ended);
    EXPECT_FALSE(status.ending);
    EXPECT_TRUE(is_active(one.key()));
    m_accounting.silent = false;
    PastJob past;
    past.state = JobState::timeout;
    m_accounting.past[JobId{1}] = past;
    EXPECT_EQ(query_run(m_services, one.key()).ending->cause, Cause::time_limit);
    EXPECT_FALSE(is_active(one.key()));
}

TEST_F(QueryStatus, LetsAStoppedRunLeaveTheQueue)
{
    const RunOnDisk one = run().submitted(JobId{1}).stop_asked("ada@login1", m_clock.now());
    job(one.key(), 1, JobState::pending);
    query_run(m_services, one.key()); // gpuq stop itself is still running
    EXPECT_THAT(m_cluster.requests, ElementsAre("own_jobs"));
    m_cluster.requests.clear();
    m_clock.advance(6s);
    query_run(m_services, one.key());
    EXPECT_THAT(m_cluster.requests, ElementsAre("own_jobs", "cancel 1"));
    EXPECT_EQ(query_run(m_services, one.key()).ending->cause, Cause::stopped);
}

TEST_F(QueryStatus, DoesNotTakeAnothersJobForItsOwn)
{
    // The cluster was set up again and counts from 1.
    const RunOnDisk old = run().submitted(JobId{1});
    const RunOnDisk fresh = run().submitted(JobId{1});
    job(fresh.key(), 1, JobState::running);
    PastJob past;
    past.state = JobState::timeout;
    past.comment = job_comment(fresh.key());
    m_accounting.past[JobId{1}] = past;
    const RunStatuses statuses = query_status(m_services, {old.key(), fresh.key()});
    EXPECT_EQ(statuses.runs[0].ending->cause, Cause::lost);
    EXPECT_EQ(statuses.runs[1].state, RunState::running);
}

TEST_F(QueryStatus, DoesNotJudgeARunOfAnotherCluster)
{
    const RunOnDisk one = run().submitted(JobId{1});
    m_cluster.cluster_name = "elsewhere";
    const RunStatus status = query_run(m_services, one.key());
    EXPECT_EQ(status.state, RunState::unknown);
    EXPECT_EQ(status.why_unknown, "it belongs to cluster 'lab'");
}

TEST_F(QueryStatus, HearsALastWordThatCameWhileItAsked)
{
    /// The supervisor records its end and exits just before Slurm responds.
    class LateWord : public fakes::FakeCluster {
    public:
        std::function<void()> before_answer;
        Result<std::vector<Job>> own_jobs() override
        {
            before_answer();
            return FakeCluster::own_jobs();
        }
    };
    RunOnDisk one = run().submitted(JobId{1}).started(JobId{1}, m_clock.now() - 1min);
    LateWord cluster;
    cluster.before_answer = [&] { one.ended({7, Cause::gpu_memory, "", m_clock.now()}); };
    Job over;
    over.id = JobId{1};
    over.state = JobState::failed;
    over.exit_status = 7;
    cluster.jobs = {over};
    m_services.cluster = [&] { return Result<Cluster*>(&cluster); };
    EXPECT_EQ(query_run(m_services, one.key()).ending->cause, Cause::gpu_memory);
    EXPECT_FALSE(m_store.files.contains(layout::ended_json(one.key())));
}

TEST_F(QueryStatus, LivesWithAFolderThatCanNotBeWritten)
{
    const RunOnDisk one = run().submitted(JobId{1});
    job(one.key(), 1, JobState::timeout);
    m_store.read_only = true;
    EXPECT_EQ(query_run(m_services, one.key()).ending->cause, Cause::time_limit);
    EXPECT_TRUE(is_active(one.key()));
}

/// A chain: a run of several links.
class QueryChain : public QueryStatus {
protected:
    RunOnDisk chain()
    {
        auto run = fakes::some_run(m_clock.now() - 10min, "train", ++m_number);
        run.request.walltime = 24h;
        run.request.chain.emplace();
        run.request.chain->link = 1h;
        run.request.chain->from_scratch = true;
        return RunOnDisk(m_store, run).submitted(JobId{1}).started(JobId{1}, m_clock.now() - 1min);
    }
    void next(const RunOnDisk& one, JobState state)
    {
        const LinkJob link{"lab", JobId{2}, m_clock.now(), true};
        ASSERT_TRUE(m_store.write(layout::job_json(one.key(), LinkNumber{2}), to_json(link)));
        job(one.key(), 2, state).comment = job_comment(one.key(), LinkNumber{2});
        m_cluster.next_id = 3;
    }
    void ends(RunOnDisk& one, bool continues)
    {
        Event ended;
        ended.kind = Event::Kind::ended;
        ended.at = m_clock.now();
        ended.cause = Cause::time_limit;
        ended.status = 124;
        ended.continues = continues;
        one.event(ended);
    }
    bool is_written_down(const RunOnDisk& one)
    {
        return m_store.files.contains(layout::ended_json(one.key()));
    }
};

TEST_F(QueryChain, ShowsTheLinkThatRunsWhileTheNextOneWaits)
{
    RunOnDisk one = chain();
    one.beat(JobId{1}, m_clock.now());
    next(one, JobState::pending);
    const RunStatus status = query_run(m_services, one.key());
    EXPECT_EQ(status.state, RunState::running);
    EXPECT_EQ(status.link, LinkNumber{1});
    EXPECT_EQ(status.next_job, JobId{2});
}

TEST_F(QueryChain, ItsLinkEndsWhenItsSupervisorHasRecordedIt)
{
    RunOnDisk one = chain();
    one.beat(JobId{1}, m_clock.now());
    EXPECT_EQ(query_run(m_services, one.key()).ends_at, m_clock.now() + 59min);
    Event changed;
    changed.kind = Event::Kind::limit_changed;
    changed.at = m_clock.now();
    const Time end = std::chrono::floor<std::chrono::seconds>(m_clock.now() + 3h);
    changed.to = end.time_since_epoch() / 1s;
    one.event(changed);
    EXPECT_EQ(query_run(m_services, one.key()).ends_at, end);
}

TEST_F(QueryChain, WaitsForTheNextLinkOnceOneHasGoneOn)
{
    RunOnDisk one = chain();
    next(one, JobState::pending);
    ends(one, /*continues=*/true);
    const RunStatus status = query_run(m_services, one.key());
    EXPECT_EQ(status.state, RunState::waiting);
    EXPECT_EQ(status.link, LinkNumber{2});
    EXPECT_EQ(status.first_job, JobId{1});
}

TEST_F(QueryChain, LeavesALostLinkToTheOneThatWaits)
{
    RunOnDisk one = chain();
    job(one.key(), 1, JobState::node_fail);
    next(one, JobState::pending);
    EXPECT_EQ(query_run(m_services, one.key()).state, RunState::waiting);
    EXPECT_FALSE(is_written_down(one));
    EXPECT_TRUE(is_active(one.key()));
    m_cluster.jobs.erase(m_cluster.jobs.begin()); // Slurm has forgotten the job
    EXPECT_EQ(query_run(m_services, one.key()).state, RunState::waiting);
    EXPECT_FALSE(is_written_down(one));
}

TEST_F(QueryChain, GivesALostLinkANextOne)
{
    RunOnDisk one = chain();
    job(one.key(), 1, JobState::node_fail);
    m_cluster.next_id = 3;
    EXPECT_EQ(query_run(m_services, one.key()).link, LinkNumber{2});
    ASSERT_EQ(m_cluster.specs.size(), 1u);
    EXPECT_EQ(m_cluster.specs[0].comment, job_comment(one.key(), LinkNumber{2}));
    EXPECT_FALSE(is_written_down(one));
    query_run(m_services, one.key());
    EXPECT_EQ(m_cluster.specs.size(), 1u);
}

/// A link and the job of the next one died with their node. They are checked only after Slurm has
/// forgotten both.
class QueryForgottenChain : public QueryChain {
protected:
    RunOnDisk forgotten()
    {
        RunOnDisk one = chain();
        next(one, JobState::node_fail);
        m_cluster.jobs.clear();
        for (const std::uint32_t id : {1U, 2U}) {
            PastJob& past = m_accounting.past[JobId{id}];
            past.id = JobId{id};
            past.state = JobState::node_fail;
            past.comment = job_comment(one.key(), LinkNumber{static_cast<int>(id)});
            past.ended_at = m_clock.now() - 1min;
        }
        return one;
    }
};

TEST_F(QueryForgottenChain, GoesOn)
{
    RunOnDisk one = forgotten();
    EXPECT_EQ(query_run(m_services, one.key()).state, RunState::waiting);
    ASSERT_EQ(m_cluster.specs.size(), 1U);
    EXPECT_EQ(m_cluster.specs[0].comment, job_comment(one.key(), LinkNumber{3}));
    EXPECT_FALSE(is_written_down(one));
}

TEST_F(QueryForgottenChain, GoesOnWithoutAWordInAccounting)
{
    RunOnDisk one = forgotten();
    m_accounting.past.erase(JobId{2});
    query_run(m_services, one.key());
    EXPECT_EQ(m_cluster.specs.size(), 1U);
}

TEST_F(QueryForgottenChain, HasEndedWhenTheNextWasCancelled)
{
    RunOnDisk one = forgotten();
    m_accounting.past[JobId{2}].state = JobState::cancelled;
    EXPECT_EQ(query_run(m_services, one.key()).state, RunState::ended);
    EXPECT_TRUE(m_cluster.specs.empty());
}

TEST_F(QueryForgottenChain, IsUnknownWhileAccountingIsLateOrSilent)
{
    RunOnDisk one = forgotten();
    m_accounting.past[JobId{2}].state = JobState::running;
    EXPECT_EQ(query_run(m_services, one.key()).state, RunState::unknown);
    EXPECT_TRUE(m_cluster.specs.empty());
    EXPECT_FALSE(is_written_down(one));
    m_clock.advance(2h);
    query_run(m_services, one.key());
    EXPECT_EQ(m_cluster.specs.size(), 1U) << "it never will tell";
}

TEST_F(QueryChain, ResurrectsNoCancelledOne)
{
    RunOnDisk one = chain();
    job(one.key(), 1, JobState::cancelled);
    EXPECT_EQ(query_run(m_services, one.key()).ending->cause, Cause::cancelled);
    EXPECT_TRUE(m_cluster.specs.empty());

    RunOnDisk two = chain();
    m_cluster.jobs.clear();
    job(two.key(), 1, JobState::node_fail);
    next(two, JobState::cancelled);
    EXPECT_EQ(query_run(m_services, two.key()).state, RunState::ended);
    EXPECT_TRUE(m_cluster.specs.empty());
}

TEST_F(QueryChain, StopsARunThatNobodyHasGivenANextLink)
{
    RunOnDisk one = chain();
    ends(one, /*continues=*/true);
    one.stop_asked("ada@login1", m_clock.now());
    EXPECT_EQ(query_run(m_services, one.key()).ending->cause, Cause::stopped);
    EXPECT_TRUE(m_cluster.specs.empty());
}

TEST_F(QueryChain, SubmitsNothingToAnotherCluster)
{
    RunOnDisk one = chain();
    ends(one, /*continues=*/true);
    m_cluster.cluster_name = "elsewhere";
    EXPECT_EQ(query_run(m_services, one.key()).state, RunState::waiting);
    EXPECT_TRUE(m_cluster.specs.empty());
}

TEST_F(QueryChain, DoesNotTakeTheEndOfALinkForThatOfTheNext)
{
    class LateWord : public fakes::FakeCluster {
    public:
        std::function<void()> before_answer;
        Result<std::vector<Job>> own_jobs() override
        {
            before_answer();
            return FakeCluster::own_jobs();
        }
    };
    RunOnDisk one = chain();
    job(one.key(), 1, JobState::completed);
    next(one, JobState::pending);
    LateWord cluster;
    cluster.jobs = m_cluster.jobs;
    cluster.before_answer = [&] { ends(one, /*continues=*/true); };
    m_services.cluster = [&] { return Result<Cluster*>(&cluster); };
    EXPECT_NE(query_run(m_services, one.key()).state, RunState::ended);
    EXPECT_FALSE(is_written_down(one));
}

TEST(ReadEvidence, LeavesOutWhatMakesNoSense)
{
    fakes::MemoryStore store;
    const RunOnDisk one(store, fakes::some_run(Time(1'800'000'000s), "train"));
    store.files[layout::run_json(one.key())] = "{ torn";
    store.files[layout::heartbeat(one.key(), LinkNumber{1})] = "";
    store.append(layout::journal(one.key(), LinkNumber{1}), "{\"v\":1,\"at\":");
    const Evidence evidence = read_evidence(store, one.key());
    EXPECT_FALSE(evidence.run);
    EXPECT_FALSE(evidence.heartbeat);
    EXPECT_THAT(evidence.journal, IsEmpty());
}

TEST(ReadEvidence, LooksAtTheNewestLinkThatHasBegun)
{
    fakes::MemoryStore store;
    const RunOnDisk one(store, fakes::some_run(Time(1'800'000'000s), "train"));
    ASSERT_TRUE(store.make_dir(layout::link_dir(one.key(), LinkNumber{2})));
    ASSERT_TRUE(store.make_dir(layout::link_dir(one.key(), LinkNumber{10})));
    ASSERT_TRUE(store.make_dir(layout::run_dir(one.key()) + "/link-x"));
    EXPECT_EQ(read_evidence(store, one.key()).link, LinkNumber{9}); // 10 may still wait for it
    store.append(layout::log(one.key(), LinkNumber{10}, Stream::out), "x");
    EXPECT_EQ(read_evidence(store, one.key()).link, LinkNumber{10});
}

TEST(Runs, AreListedNewestFirstWithoutStrayFiles)
{
    fakes::MemoryStore store;
    const RunOnDisk old(store, fakes::some_run(Time(1'800'000'000s), "a"));
    const RunOnDisk fresh(store, fakes::some_run(Time(1'800'000'100s), "b"));
    ASSERT_TRUE(store.write("runs/README", "x"));
    EXPECT_THAT(all_runs(store).value(), ElementsAre(fresh.key(), old.key()));
    ASSERT_TRUE(store.remove(layout::active(old.key())));
    EXPECT_THAT(active_runs(store).value(), ElementsAre(fresh.key()));
    fakes::MemoryStore empty;
    EXPECT_THAT(all_runs(empty).value(), IsEmpty());
}

} // namespace
} // namespace gpuq
