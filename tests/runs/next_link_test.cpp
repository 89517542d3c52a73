// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/next_link.h"

#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "ports/cluster.h"
#include "runs/credentials.h"
#include "runs/run_on_disk.h"
#include "runs/succession.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr LinkNumber k_one{1}, k_two{2}, k_three{3};

class NextLinkOf : public ::testing::Test {
protected:
    fakes::FakeClock m_clock;
    fakes::MemoryStore m_store;
    fakes::FakeCluster m_cluster;
    gpuq::Run m_run = chain(m_clock.now());
    NextLink m_next = second();

    NextLinkOf()
    {
        fakes::RunOnDisk(m_store, m_run).submitted(JobId{100});
        m_cluster.next_id = 101;
    }

    static gpuq::Run chain(Time now)
    {
        gpuq::Run run = fakes::some_run(now, "train");
        run.request.walltime = 24h;
        run.request.chain.emplace();
        run.request.chain->link = 1h;
        run.request.chain->supervisor = "/usr/libexec/gpuq/gpuq-supervisor";
        return run;
    }
    static NextLink second()
    {
        NextLink next;
        next.link = k_two;
        next.length = 1h;
        next.after = JobId{100};
        return next;
    }

    Result<JobId> submit() { return submit_link(m_store, m_cluster, m_clock, m_run, m_next); }
    /// By the link's own job, which has started.
    Result<JobId> hold(std::uint32_t own = 101)
    {
        m_cluster.find(JobId{own})->state = JobState::running;
        return hold_link(m_store, m_cluster, m_clock, m_run, m_next);
    }
    Result<void> release() { return release_link(m_store, m_cluster, m_clock, m_run.key); }
    Result<void> withdraw() { return withdraw_link(m_store, m_cluster, m_run, k_two); }

    Job& job(std::uint32_t id, JobState state, LinkNumber link = k_two)
    {
        Job job;
        job.id = JobId{id};
        job.comment = job_comment(m_run.key, link);
        job.state = state;
        m_cluster.jobs.push_back(job);
        return m_cluster.jobs.back();
    }
    void claimed(LinkNumber link, std::uint32_t id)
    {
        m_store.append(layout::claim(m_run.key, link), std::to_string(id) + "\n");
    }
    void add_event(LinkNumber link, Event::Kind kind, Cause cause = Cause::finished, int status = 0,
                   bool continues = false)
    {
        Event event;
        event.kind = kind;
        event.at = m_clock.now();
        if (kind == Event::Kind::ended) {
            event.cause = cause;
            event.status = status;
            event.continues = continues;
        }
        m_store.append(layout::journal(m_run.key, link), to_line(event));
    }
    std::optional<JobId> recorded(LinkNumber link = k_two)
    {
        const auto text = m_store.read(layout::job_json(m_run.key, link));
        return text ? std::optional(link_job_from_json(*text)->job) : std::nullopt;
    }
    JobState state_of(std::uint32_t id) { return m_cluster.find(JobId{id})->state; }

    Succession start(LinkNumber link, std::uint32_t id, Cluster* cluster = nullptr)
    {
        return succeed(m_store, cluster ? cluster : &m_cluster, m_run, link, JobId{id},
                       m_clock.now(), [](LinkPast&) {});
    }
};

TEST_F(NextLinkOf, IsSubmittedOnce)
{
    m_next.pause = 60s;
    m_next.exclude = {"node1"};
    EXPECT_EQ(submit().value(), JobId{101});
    EXPECT_EQ(submit().value(), JobId{101});
    ASSERT_EQ(m_cluster.specs.size(), 1u);
    const JobSpec& spec = m_cluster.specs.front();
    EXPECT_EQ(spec.comment, job_comment(m_run.key, k_two));
    EXPECT_EQ(spec.after_any, JobId{100});
    EXPECT_EQ(spec.walltime, 60min);
    EXPECT_EQ(spec.pause, 60s);
    EXPECT_THAT(spec.exclude, ElementsAre("node1"));
    EXPECT_EQ(recorded(), JobId{101});
    EXPECT_EQ(m_store.read(layout::job_index("lab", JobId{101})).value(), m_run.key.text() + "\n");
}

TEST_F(NextLinkOf, IsFoundByItsCommentWhenTheAnswerWasLost)
{
    m_cluster.lost_answers = 1;
    EXPECT_EQ(submit().error().kind, Error::Kind::unreachable);
    EXPECT_FALSE(recorded());
    EXPECT_EQ(submit().value(), JobId{101});
    EXPECT_EQ(m_cluster.specs.size(), 1u);
}

TEST_F(NextLinkOf, IsNotSubmittedWhileNobodyKnowsWhatThereIs)
{
    m_cluster.silent = true;
    EXPECT_EQ(submit().error().kind, Error::Kind::unreachable);
    EXPECT_THAT(m_cluster.specs, IsEmpty());
}

TEST_F(NextLinkOf, KeepsTheOldestOfSeveralJobs)
{
    job(108, JobState::pending);
    job(107, JobState::pending);
    job(90, JobState::failed);
    job(80, JobState::pending, k_three); // for another link
    EXPECT_EQ(submit().value(), JobId{107});
    EXPECT_EQ(state_of(108), JobState::cancelled);
    EXPECT_EQ(state_of(80), JobState::pending);
}

TEST_F(NextLinkOf, KeepsTheJobThatRunsTheLink)
{
    job(107, JobState::pending);
    job(108, JobState::running).comment += " busy=1 idle=2 unknown=3";
    claimed(k_two, 108);
    EXPECT_EQ(submit().value(), JobId{108});
    EXPECT_EQ(state_of(108), JobState::running);
    EXPECT_EQ(state_of(107), JobState::cancelled);
}

TEST_F(NextLinkOf, OfTwoSubmittersTheFirstWins)
{
    /// Another process records its job while this one is being submitted.
    class Crossing : public fakes::FakeCluster {
    public:
        std::function<void()> meanwhile;
        Result<JobId> submit(const JobSpec& spec, const std::string& script,
                             const std::vector<std::string>& environment) override
        {
            auto job = FakeCluster::submit(spec, script, environment);
            meanwhile();
            return job;
        }
    };
    Crossing cluster;
    cluster.next_id = 101;
    cluster.meanwhile = [&] {
        const LinkJob other{"lab", JobId{99}, m_clock.now(), true};
        ASSERT_TRUE(m_store.write_once(layout::job_json(m_run.key, k_two), to_json(other)));
    };
    EXPECT_EQ(submit_link(m_store, cluster, m_clock, m_run, m_next).value(), JobId{99});
    EXPECT_EQ(cluster.find(JobId{101})->state, JobState::cancelled);
}

TEST_F(NextLinkOf, PassesARefusalOn)
{
    m_cluster.refusal = "Invalid account";
    EXPECT_EQ(submit().error(), fail(Error::Kind::denied, "Invalid account"));
    EXPECT_FALSE(recorded());
}

TEST_F(NextLinkOf, IsNotMadeAgainWhenSomebodyHasCancelledIt)
{
    job(107, JobState::cancelled);
    EXPECT_EQ(submit().error(),
              fail(Error::Kind::stopped, "the job of its next link, 107, was cancelled"));
    EXPECT_THAT(m_cluster.specs, IsEmpty());
    m_next.resumed = true; // this time by the user's request
    EXPECT_EQ(submit().value(), JobId{101});
}

TEST_F(NextLinkOf, IsReplacedWithoutAMomentWithoutAJob)
{
    ASSERT_EQ(submit().value(), JobId{101});
    m_next.pause = 60s;
    EXPECT_EQ(replace_link(m_store, m_cluster, m_clock, m_run, m_next, JobId{101}).value(),
              JobId{102});
    EXPECT_EQ(recorded(), JobId{102});
    EXPECT_EQ(state_of(101), JobState::cancelled);
    m_cluster.lost_answers = 1;
    EXPECT_FALSE(replace_link(m_store, m_cluster, m_clock, m_run, m_next, JobId{102}));
    EXPECT_EQ(recorded(), JobId{102});
    EXPECT_EQ(state_of(102), JobState::pending);
}

TEST_F(NextLinkOf, IsHeldInAnotherJobAndReleasedInAThird)
{
    add_event(k_one, Event::Kind::program_started);
    add_event(k_one, Event::Kind::ended, Cause::time_limit, 85, /*continues=*/true);
    ASSERT_EQ(submit().value(), JobId{101});
    EXPECT_EQ(hold().value(), JobId{102});
    EXPECT_EQ(recorded(), JobId{102});
    EXPECT_EQ(m_cluster.specs.back().pause, k_held_for);
    EXPECT_EQ(state_of(101), JobState::running) << "who holds itself leaves by itself";
    EXPECT_EQ(held_from_json(m_store.files[held_json(m_run.key)])->link, k_two);

    EXPECT_TRUE(release());
    EXPECT_EQ(recorded(), JobId{103});
    EXPECT_EQ(m_cluster.specs.back().pause, 0s);
    EXPECT_EQ(state_of(102), JobState::cancelled);
    EXPECT_EQ(m_store.files.count(held_json(m_run.key)), 0U);
    EXPECT_TRUE(release()) << "when none is held";
    EXPECT_EQ(recorded(), JobId{103});
}

TEST_F(NextLinkOf, IsHeldInOneJobThoughAnswersAreLost)
{
    ASSERT_EQ(submit().value(), JobId{101});
    m_cluster.lost_answers = 2;
    EXPECT_EQ(hold().error().kind, Error::Kind::unreachable);
    EXPECT_EQ(hold().value(), JobId{102});
    EXPECT_EQ(hold().value(), JobId{102});
    EXPECT_EQ(recorded(), JobId{102});
    EXPECT_EQ(m_cluster.specs.size(), 2U);
    EXPECT_EQ(state_of(101), JobState::running);
}

TEST_F(NextLinkOf, IsHeldInTheNewestOfSeveralJobs)
{
    ASSERT_EQ(submit().value(), JobId{101});
    job(107, JobState::pending);
    job(108, JobState::pending);
    job(109, JobState::pending, k_three);
    EXPECT_EQ(hold().value(), JobId{108});
    EXPECT_EQ(recorded(), JobId{108});
    EXPECT_EQ(state_of(107), JobState::cancelled);
    EXPECT_EQ(state_of(109), JobState::pending);
}

TEST_F(NextLinkOf, IsReleasedFromAllJobsThatHoldIt)
{
    ASSERT_EQ(submit().value(), JobId{101});
    ASSERT_EQ(hold().value(), JobId{102});
    job(109, JobState::pending);
    m_cluster.next_id = 110;
    EXPECT_TRUE(release());
    EXPECT_EQ(recorded(), JobId{110});
    EXPECT_EQ(state_of(102), JobState::cancelled);
    EXPECT_EQ(state_of(109), JobState::cancelled);
    EXPECT_EQ(state_of(110), JobState::pending);
    EXPECT_EQ(state_of(101), JobState::running) << "it leaves by itself";
}

TEST_F(NextLinkOf, LosesTheJobsThatHoldItOnceItHasBegun)
{
    ASSERT_EQ(submit().value(), JobId{101});
    m_cluster.lost_answers = 1;
    ASSERT_FALSE(hold());
    claimed(k_two, 101); // it has got its ticket in the meantime
    EXPECT_TRUE(release());
    EXPECT_EQ(state_of(101), JobState::running);
    EXPECT_EQ(state_of(102), JobState::cancelled);
    EXPECT_EQ(m_store.files.count(held_json(m_run.key)), 0U);
}

TEST_F(NextLinkOf, IsNotReleasedWhenItHasBegun)
{
    ASSERT_EQ(submit().value(), JobId{101});
    ASSERT_TRUE(hold());
    claimed(k_two, 102);
    EXPECT_TRUE(release());
    EXPECT_EQ(recorded(), JobId{102});
}

TEST_F(NextLinkOf, StaysHeldWhileSlurmDoesNotAnswer)
{
    ASSERT_EQ(submit().value(), JobId{101});
    ASSERT_TRUE(hold());
    m_cluster.lost_answers = 1;
    EXPECT_FALSE(release());
    EXPECT_EQ(m_store.files.count(held_json(m_run.key)), 1U);
}

TEST_F(NextLinkOf, ClaimsNothingWhenItLacksSomething)
{
    m_run.request.chain->from_scratch = true;
    add_event(k_one, Event::Kind::ended, Cause::time_limit, 124, /*continues=*/true);
    const auto judged = [&](bool lacks) {
        return succeed(
                   m_store, &m_cluster, m_run, k_two, JobId{101}, m_clock.now(), [](LinkPast&) {},
                   [lacks] { return lacks; })
            .is;
    };
    EXPECT_EQ(judged(true), Succession::Is::hold);
    EXPECT_EQ(m_store.files.count(layout::claim(m_run.key, k_two)), 0U);
    EXPECT_EQ(judged(false), Succession::Is::link_start);
    EXPECT_EQ(m_store.files.count(layout::claim(m_run.key, k_two)), 1U);
}

TEST_F(NextLinkOf, IsWithdrawn)
{
    ASSERT_TRUE(submit());
    EXPECT_TRUE(withdraw());
    EXPECT_EQ(state_of(101), JobState::cancelled);
    EXPECT_FALSE(recorded());
    EXPECT_TRUE(withdraw()) << "when there is none";
}

TEST_F(NextLinkOf, IsWithdrawnWithAllItsJobs)
{
    ASSERT_EQ(submit().value(), JobId{101});
    job(107, JobState::pending);
    job(108, JobState::pending, k_three);
    EXPECT_TRUE(withdraw());
    EXPECT_EQ(state_of(101), JobState::cancelled);
    EXPECT_EQ(state_of(107), JobState::cancelled);
    EXPECT_EQ(state_of(108), JobState::pending);
    EXPECT_FALSE(recorded());
}

TEST_F(NextLinkOf, IsWithdrawnThoughNobodyWroteItDown)
{
    job(107, JobState::pending);
    EXPECT_TRUE(withdraw());
    EXPECT_EQ(state_of(107), JobState::cancelled);
}

TEST_F(NextLinkOf, IsLeftAloneOnceItRunsItsProgram)
{
    ASSERT_TRUE(submit());
    claimed(k_two, 101);
    EXPECT_TRUE(withdraw());
    EXPECT_EQ(state_of(101), JobState::pending);
    EXPECT_EQ(recorded(), JobId{101});
}

// Start of a link.

TEST_F(NextLinkOf, LetsOneJobRunTheLink)
{
    m_run.request.chain->from_scratch = true;
    add_event(k_one, Event::Kind::ended, Cause::time_limit, 124, /*continues=*/true);
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::link_start);
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::link_start) << "asked again";
    EXPECT_EQ(start(k_two, 102).is, Succession::Is::leave);
}

TEST_F(NextLinkOf, LeavesWhenTheRunIsOver)
{
    add_event(k_one, Event::Kind::ended, Cause::finished, 0);
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::leave);
}

TEST_F(NextLinkOf, WaitsWhileTheNodeBeforeMayBeAlive)
{
    m_run.request.chain->from_scratch = true;
    add_event(k_one, Event::Kind::supervisor_started);
    job(100, JobState::node_fail, k_one);
    m_store.append(layout::heartbeat(m_run.key, k_one),
                   to_line(Heartbeat{m_clock.now(), JobId{100}, 1, 0, 0}));
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::wait);
    m_clock.advance(16s);
    const Succession found = start(k_two, 101);
    EXPECT_EQ(found.is, Succession::Is::link_start);
    EXPECT_EQ(found.verdict.restart, Restart::node);
    EXPECT_FALSE(found.has_own_ending);
}

TEST_F(NextLinkOf, DoesNotWaitForADeadNodeWhoseClockWasHoursAhead)
{
    m_run.request.chain->from_scratch = true;
    add_event(k_one, Event::Kind::supervisor_started);
    m_store.append(layout::heartbeat(m_run.key, k_one),
                   to_line(Heartbeat{m_clock.now() + 3h, JobId{100}, 1, 0, 0}));
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::link_start) << "Slurm does not know its job";
    m_store.files.erase(layout::claim(m_run.key, k_two));
    job(100, JobState::running, k_one);
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::wait);
    m_cluster.find(JobId{100})->state = JobState::node_fail;
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::link_start);
}

TEST_F(NextLinkOf, WaitsWhileSlurmIsSilentAboutTheLinkBefore)
{
    add_event(k_one, Event::Kind::supervisor_started);
    m_cluster.silent = true;
    const Succession found = start(k_two, 101);
    EXPECT_EQ(found.is, Succession::Is::wait);
    EXPECT_EQ(found.why, "how link 1 ended is not yet known");
}

TEST_F(NextLinkOf, IsNotResurrectedAfterAScancel)
{
    m_run.request.chain->from_scratch = true;
    add_event(k_one, Event::Kind::supervisor_started);
    job(100, JobState::cancelled, k_one);
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::leave);
    EXPECT_TRUE(m_store.files.contains(layout::ended_json(m_run.key)));
}

TEST_F(NextLinkOf, IsNotResurrectedAfterAScancelThatCameAfterTheLastWord)
{
    m_run.request.chain->from_scratch = true;
    add_event(k_one, Event::Kind::supervisor_started);
    add_event(k_one, Event::Kind::ended, Cause::time_limit, 124, /*continues=*/true);
    job(100, JobState::cancelled, k_one);
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::leave);
}

TEST_F(NextLinkOf, DoesNotStartOnceSomebodyHasAskedToStop)
{
    m_run.request.chain->from_scratch = true;
    add_event(k_one, Event::Kind::ended, Cause::time_limit, 124, /*continues=*/true);
    m_store.append(layout::inbox(m_run.key) + "/" + layout::k_save_and_stop_request,
                   to_json(StopRequest{"ada@login1", m_clock.now()}));
    EXPECT_EQ(start(k_two, 101).is, Succession::Is::leave);
    EXPECT_EQ(ending_from_json(m_store.files[layout::ended_json(m_run.key)])->cause,
              Cause::stopped);
}

TEST_F(NextLinkOf, GoesOnForAPersonWhateverEndedTheRun)
{
    add_event(k_one, Event::Kind::ended, Cause::stopped, 123);
    m_next.resumed = true;
    ASSERT_TRUE(submit());
    const Succession found = start(k_two, 101);
    EXPECT_EQ(found.is, Succession::Is::link_start);
    EXPECT_EQ(found.verdict.restart, Restart::user);
}

TEST_F(NextLinkOf, FencesWhatCameBeforeALinkThatNeverBegan)
{
    m_run.request.chain->from_scratch = true;
    add_event(k_one, Event::Kind::supervisor_started);
    m_clock.advance(2min);
    job(100, JobState::node_fail, k_one);
    ASSERT_TRUE(submit());
    m_cluster.find(JobId{101})->state = JobState::failed;
    EXPECT_EQ(start(k_three, 102).is, Succession::Is::link_start);
    EXPECT_TRUE(m_store.files.contains(layout::claim(m_run.key, k_two)));
}

// Handing over.

TEST_F(NextLinkOf, HandsOverToTheJobThatWaits)
{
    ASSERT_TRUE(submit());
    Verdict verdict;
    verdict.decision = Verdict::Decision::next_link;
    EXPECT_EQ(hand_over(m_store, &m_cluster, m_clock, m_run, m_next, verdict), JobId{101});
    verdict.pause = 60s;
    EXPECT_EQ(hand_over(m_store, &m_cluster, m_clock, m_run, m_next, verdict), JobId{102});
    EXPECT_EQ(verdict.decision, Verdict::Decision::next_link);
}

TEST_F(NextLinkOf, EndsTheRunWhenItsJobWasCancelledWhileItWaited)
{
    ASSERT_TRUE(submit());
    m_cluster.find(JobId{101})->state = JobState::cancelled;
    Verdict verdict;
    verdict.decision = Verdict::Decision::next_link;
    EXPECT_EQ(hand_over(m_store, &m_cluster, m_clock, m_run, m_next, verdict), std::nullopt);
    EXPECT_EQ(verdict.decision, Verdict::Decision::over);
    EXPECT_EQ(verdict.ending->detail, "the job of its next link, 101, was cancelled");
}

// Past links.

TEST_F(NextLinkOf, DoesNotCountTheTimeInTheQueueAsTheTimeOfALostLink)
{
    add_event(k_one, Event::Kind::supervisor_started);
    m_clock.advance(10min);
    m_store.append(layout::heartbeat(m_run.key, k_one),
                   to_line(Heartbeat{m_clock.now(), JobId{100}, 1, 0, 0}));
    m_clock.advance(10h);
    Event resumed;
    resumed.kind = Event::Kind::resumed;
    resumed.at = m_clock.now();
    resumed.cause = Cause::node_failed;
    m_store.append(layout::journal(m_run.key, k_two), to_line(resumed));
    const auto links = read_links(m_store, m_run.key, k_two);
    ASSERT_TRUE(links[0].ending);
    EXPECT_EQ(links[0].ending->cause, Cause::node_failed);
    EXPECT_EQ(time_used({links[0]}, m_clock.now()), 10min + 5s);
}

} // namespace
} // namespace gpuq
