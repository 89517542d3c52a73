// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/submission.h"

#include "core/layout.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/memory_store.h"
#include "ports/cluster.h"
#include "runs/records/record.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

/// A login host with one run that is about to be submitted.
struct Login {
    fakes::MemoryStore store;
    fakes::FakeCluster cluster;
    fakes::FakeClock clock;
    Run run{RunKey::make(clock.now(), {1}), "lab", "ada", "login", "1", clock.now(), {}, {"A=1"}};
    std::vector<std::string> notices;
    std::function<void()> while_pausing = [] {};
    bool try_now = true;
    bool snapshot_at_once = false;
    bool snapshot_fails = false;
    std::size_t failing_snapshots = 0;        ///< the first ones
    std::vector<std::size_t> snapshots_taken; ///< the number of requests to Slurm before each

    Result<Submitted> submit()
    {
        Submission submission{run, {}, {"supervisor"}, "#!/bin/sh\n", try_now};
        submission.take_snapshot = [this]() -> Result<std::string> {
            snapshots_taken.push_back(cluster.requests.size());
            return snapshot_fails || snapshots_taken.size() <= failing_snapshots
                       ? Result<std::string>(fail(Error::Kind::io, "disk full"))
                       : std::string("snapshot");
        };
        submission.snapshot_at_once = snapshot_at_once;
        submission.spec.comment = job_comment(run.key);
        Patience patience;
        patience.notice = [this](const std::string& text) { notices.push_back(text); };
        patience.pause = [this](std::chrono::milliseconds time) {
            clock.advance(time);
            while_pausing();
            return true;
        };
        return submit_run(store, cluster, clock, submission, patience);
    }

    int living_jobs() const
    {
        return static_cast<int>(std::count_if(cluster.jobs.begin(), cluster.jobs.end(),
                                              [](const Job& job) { return !is_over(job.state); }));
    }
    long requests(const std::string& question) const
    {
        return std::count(cluster.requests.begin(), cluster.requests.end(), question);
    }
};

TEST(Submission, StartsAtOnceWhenAGpuIsFreeAndRecordsTheJob)
{
    Login login;
    const auto submitted = login.submit();
    ASSERT_TRUE(submitted);
    EXPECT_FALSE(submitted->batch);
    EXPECT_TRUE(submitted->process.has_value());
    const auto job = login.store.read(layout::job_json(login.run.key, LinkNumber{1}));
    ASSERT_TRUE(job);
    EXPECT_EQ(link_job_from_json(*job)->job, submitted->job);
    EXPECT_EQ(*login.store.read(layout::job_index("lab", submitted->job)),
              login.run.key.text() + "\n");
}

TEST(Submission, HasTheRequestOnDiskBeforeItAsksSlurm)
{
    for (const bool try_now : {true, false}) {
        Login login;
        login.try_now = try_now;
        login.store.full = true;
        EXPECT_FALSE(login.submit());
        EXPECT_TRUE(login.cluster.requests.empty());
    }
}

TEST(Submission, QueuesWhatCanNotStartNow)
{
    Login login;
    login.cluster.no_gpu_free = true;
    const auto submitted = login.submit();
    ASSERT_TRUE(submitted);
    EXPECT_TRUE(submitted->batch);
    EXPECT_EQ(submitted->not_now, "Requested nodes are busy");
    EXPECT_EQ(login.cluster.requests, (std::vector<std::string>{"start_now", "submit"}));
}

TEST(Submission, TakesASnapshotOnceOfARunThatWaits)
{
    using Counts = std::vector<std::size_t>;
    Login immediate;
    ASSERT_TRUE(immediate.submit());
    EXPECT_EQ(immediate.snapshots_taken, Counts{});
    Login waiting;
    waiting.cluster.no_gpu_free = true;
    ASSERT_TRUE(waiting.submit());
    EXPECT_EQ(waiting.snapshots_taken, Counts{1}) << "after start_now, before submit";
    EXPECT_EQ(waiting.store.read(layout::snapshot(waiting.run.key)).value(), "snapshot");
    Login lost; // started anew as a batch job
    lost.cluster.lost_answers = 1;
    ASSERT_TRUE(lost.submit());
    EXPECT_EQ(lost.snapshots_taken, Counts{1}) << "before waiting for Slurm";
    Login full; // for a moment
    full.cluster.lost_answers = 1;
    full.failing_snapshots = 1;
    ASSERT_TRUE(full.submit());
    EXPECT_EQ(full.snapshots_taken.size(), 2U);
    Login required;
    required.snapshot_at_once = true;
    required.cluster.no_gpu_free = true;
    ASSERT_TRUE(required.submit());
    EXPECT_EQ(required.snapshots_taken, Counts{0});
    EXPECT_EQ(required.store.read(layout::snapshot(required.run.key)).value(), "snapshot");
}

TEST(Submission, ASnapshotThatFailsLeavesNoJob)
{
    for (const bool at_once : {true, false}) {
        Login login;
        login.snapshot_at_once = at_once;
        login.snapshot_fails = true;
        login.cluster.no_gpu_free = true;
        EXPECT_EQ(login.submit().error().text, "disk full");
        EXPECT_EQ(login.living_jobs(), 0);
    }
}

TEST(Submission, FindsTheQueuedJobWhoseAnswerWasLost)
{
    Login login;
    login.try_now = false;
    login.cluster.lost_answers = 1;
    const auto submitted = login.submit();
    ASSERT_TRUE(submitted);
    EXPECT_EQ(submitted->job, login.cluster.jobs.front().id);
    EXPECT_EQ(login.requests("submit"), 1);
    EXPECT_EQ(login.living_jobs(), 1);
}

TEST(Submission, EndsAnAllocationWhoseAnswerWasLostAndQueuesTheRun)
{
    Login login;
    login.cluster.lost_answers = 1;
    const auto submitted = login.submit();
    ASSERT_TRUE(submitted);
    EXPECT_TRUE(submitted->batch);
    EXPECT_EQ(login.living_jobs(), 1);
}

TEST(Submission, AdoptsARunningBatchJobInsteadOfEndingIt)
{
    Login login;
    login.cluster.no_gpu_free = true;
    login.cluster.lost_answers = 1;
    login.cluster.silent = false;
    login.while_pausing = [&] { login.cluster.jobs.front().state = JobState::running; };
    const auto submitted = login.submit();
    ASSERT_TRUE(submitted);
    EXPECT_EQ(login.requests("submit"), 1);
    EXPECT_EQ(login.living_jobs(), 1);
}

TEST(Submission, FindsAJobThatHasNotedItsUse)
{
    Login login;
    login.cluster.no_gpu_free = true;
    login.cluster.lost_answers = 1;
    login.while_pausing = [&] {
        login.cluster.jobs.front().comment =
            job_comment(login.run.key) + " busy=1 idle=0 unknown=0";
    };
    ASSERT_TRUE(login.submit());
    EXPECT_EQ(login.requests("submit"), 1);
}

TEST(Submission, AsksAgainOnlyWhenSlurmHasHadTimeToMakeTheJob)
{
    Login login;
    login.try_now = false;
    login.cluster.silent = true;
    auto begin = login.clock.steady();
    login.while_pausing = [&] { login.cluster.silent = login.clock.steady() - begin < 5s; };
    const auto submitted = login.submit();
    ASSERT_TRUE(submitted);
    EXPECT_GE(login.clock.steady() - begin, 25s); // 5 s of silence, then two message timeouts
    EXPECT_EQ(login.requests("submit"), 2);
    EXPECT_EQ(login.living_jobs(), 1);
    EXPECT_EQ(login.notices.size(), 1u);
}

TEST(Submission, LeavesAStopRequestWhenSlurmStaysSilent)
{
    Login login;
    login.cluster.silent = true;
    const auto submitted = login.submit();
    ASSERT_FALSE(submitted);
    EXPECT_EQ(submitted.error().kind, Error::Kind::unreachable);
    EXPECT_TRUE(login.store.read(layout::inbox(login.run.key) + "/" + layout::k_stop_request));
}

TEST(Submission, PassesARefusalOn)
{
    Login login;
    login.cluster.refusal = "Invalid account";
    const auto submitted = login.submit();
    ASSERT_FALSE(submitted);
    EXPECT_EQ(submitted.error(), fail(Error::Kind::denied, "Invalid account"));
}

TEST(Submission, ForgetsARefusedRunWithoutATrace)
{
    Login login;
    login.cluster.refusal = "Invalid account";
    ASSERT_FALSE(login.submit());
    ASSERT_FALSE(login.store.files.empty());
    forget_run(login.store, login.run.key);
    EXPECT_TRUE(login.store.files.empty());
}

/// A client that polls for an answer; counts its requests and notices.
struct Asker {
    fakes::FakeClock clock;
    int pauses_allowed = 1000;
    int notices = 0;
    int questions = 0;

    Result<int> ask(int answers_at)
    {
        Patience patience;
        patience.notice = [this](const std::string&) { ++notices; };
        patience.pause = [this](std::chrono::milliseconds time) {
            clock.advance(time);
            return --pauses_allowed >= 0;
        };
        return query_with_retries(clock, patience, [&]() -> Result<int> {
            if (++questions < answers_at) {
                return fail(Error::Kind::unreachable, "no answer");
            }
            return questions;
        });
    }
};

TEST(Patience, AsksUntilThereIsAnAnswerAndTellsOnce)
{
    Asker asker;
    EXPECT_EQ(*asker.ask(5), 5);
    EXPECT_EQ(asker.notices, 1);
}

TEST(Patience, EndsAfterItsLimit)
{
    Asker asker;
    const auto answer = asker.ask(1'000'000);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, Error::Kind::unreachable);
    EXPECT_EQ(asker.questions, 61);
}

TEST(Patience, EndsWithThePersons)
{
    Asker asker;
    asker.pauses_allowed = 2;
    EXPECT_FALSE(asker.ask(1'000'000));
    EXPECT_EQ(asker.questions, 3);
}

TEST(Patience, IsNotSpentOnARefusal)
{
    Asker asker;
    Patience patience;
    patience.notice = [&](const std::string&) { ++asker.notices; };
    const auto answer = query_with_retries(asker.clock, patience, [&]() -> Result<int> {
        ++asker.questions;
        return fail(Error::Kind::denied, "no");
    });
    EXPECT_FALSE(answer);
    EXPECT_EQ(asker.questions, 1);
    EXPECT_EQ(asker.notices, 0);
}

} // namespace
} // namespace gpuq
