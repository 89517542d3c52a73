// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/json_page.h"
#include "cli/queries/site_context.h"
#include "ports/job.h"
#include "runs/evidence.h"
#include "runs/run_on_disk.h"
#include "sweeps/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Stop : public testing::Test {
protected:
    FakeServices m_services;
    unsigned char m_number = 0;

    Time now() { return m_services.time.now(); }

    RunOnDisk run(const std::string& name, std::uint32_t id, JobState state,
                  std::chrono::seconds age = 5min)
    {
        RunOnDisk run(m_services.memory, fakes::some_run(now() - age, name, ++m_number));
        run.submitted(JobId{id});
        Job job;
        job.id = JobId{id};
        job.comment = job_comment(run.key());
        job.state = state;
        job.batch = true;
        m_services.slurm.jobs.push_back(job);
        if (state == JobState::running) {
            run.started(JobId{id}, now());
        }
        return run;
    }

    Use stop(const std::vector<std::string>& arguments, const Globals& globals = {})
    {
        return use(k_stop_verb, m_services, arguments, globals);
    }

    bool is_asked(const RunOnDisk& run)
    {
        return read_evidence(m_services.memory, run.key()).stop.has_value();
    }
};

TEST_F(Stop, LeavesARequestAndCancelsTheJob)
{
    const RunOnDisk one = run("train", 7, JobState::running);
    const Use used = stop({"train"});
    EXPECT_EQ(used.status, 0);
    EXPECT_EQ(used.out, "");
    EXPECT_EQ(used.err, "gpuq: stopping run 7 (train)\n");
    EXPECT_THAT(m_services.slurm.requests, Contains("cancel 7"));
    EXPECT_THAT(read_evidence(m_services.memory, one.key()).stop->by, HasSubstr("@"));
}

Job plain_job(std::uint32_t id, const std::string& name, JobState state,
              const std::string& called = "")
{
    Job job;
    job.id = JobId{id};
    job.name = name;
    job.state = state;
    job.called = called;
    job.partition = "gpu";
    return job;
}

TEST_F(Stop, CancelsAPlainJobByItsIdOrItsName)
{
    m_services.slurm.jobs = {plain_job(20, "hand", JobState::running),
                             plain_job(21, "other", JobState::pending)};
    const Use used = stop({"20"});
    EXPECT_EQ(used.status, 0);
    EXPECT_EQ(used.err, "gpuq: stopping job 20 (hand)\n");
    EXPECT_THAT(m_services.slurm.requests, Contains("cancel_called 20"));
    EXPECT_EQ(stop({"other"}).err, "gpuq: job 21 (other) is withdrawn\n");
    EXPECT_THAT(m_services.slurm.requests, Contains("cancel_called 21"));
}

TEST_F(Stop, OfAnArrayTakesTheWholeOrAPart)
{
    m_services.slurm.jobs = {plain_job(23, "sweep", JobState::running, "20_1"),
                             plain_job(20, "sweep", JobState::pending, "20_[2-9]")};
    EXPECT_EQ(stop({"20_4"}).status, 0);
    EXPECT_THAT(m_services.slurm.requests, Contains("cancel_called 20_4"));
    EXPECT_EQ(stop({"20"}).err, "gpuq: stopping job 20: 2 parts\n");
    EXPECT_THAT(m_services.slurm.requests, Contains("cancel_called 20"));
}

TEST_F(Stop, WithoutAWordNeverMeansAPlainJob)
{
    m_services.slurm.jobs = {plain_job(20, "hand", JobState::running)};
    const Use used = stop({});
    EXPECT_NE(used.status, 0);
    EXPECT_THAT(used.err, HasSubstr("no run is active"));
    run("train", 7, JobState::running);
    EXPECT_EQ(stop({}).status, 0);
    EXPECT_THAT(m_services.slurm.requests, Not(Contains(HasSubstr("cancel_called"))));
}

TEST_F(Stop, OfANameThatARunHasTooMeansTheRun)
{
    run("train", 7, JobState::running);
    m_services.slurm.jobs.push_back(plain_job(20, "train", JobState::running));
    EXPECT_EQ(stop({"train"}).err, "gpuq: stopping run 7 (train)\n");
    EXPECT_THAT(m_services.slurm.requests, Not(Contains(HasSubstr("cancel_called"))));
}

TEST_F(Stop, OfAnIdThatHasComeRoundAgainMeansTheJobThatLives)
{
    run("train", 7, JobState::running).ended({0, Cause::finished, "", now()});
    m_services.slurm.jobs = {plain_job(7, "hand", JobState::running)};
    EXPECT_EQ(stop({"7"}).err, "gpuq: stopping job 7 (hand)\n");
}

TEST_F(Stop, IsNotAskedOfAPlainJobToSave)
{
    m_services.slurm.jobs = {plain_job(20, "hand", JobState::running)};
    const Use used = stop({"--checkpoint", "20"});
    EXPECT_EQ(used.status, 2);
    EXPECT_THAT(used.err, HasSubstr("scancel --batch --signal=USR1 20"));
    EXPECT_THAT(m_services.slurm.requests, Not(Contains(HasSubstr("cancel"))));
}

TEST_F(Stop, TakesAWaitingRunOutOfTheQueue)
{
    const RunOnDisk one = run("train", 7, JobState::pending);
    EXPECT_EQ(stop({"7"}).err, "gpuq: run 7 (train) is withdrawn\n");
    const auto ending = read_ending(m_services.memory, one.key());
    EXPECT_EQ(ending->cause, Cause::stopped);
    EXPECT_EQ(ending->status, 123);
    EXPECT_THAT(active_runs(m_services.memory).value(), IsEmpty());
}

TEST_F(Stop, NeedsNoNameWhenOneRunIsActive)
{
    run("old", 6, JobState::running).ended({0, Cause::finished, "", now()});
    run("train", 7, JobState::running);
    EXPECT_EQ(stop({}).err, "gpuq: stopping run 7 (train)\n");
}

TEST_F(Stop, AsksWhichOfSeveral)
{
    const RunOnDisk one = run("train", 7, JobState::running, 10min);
    const RunOnDisk two = run("train", 8, JobState::pending);
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"train"}}) {
        const Use used = stop(arguments);
        EXPECT_EQ(used.status, 2);
        EXPECT_EQ(used.err, "which of 2 runs? Name one: 8 (train), 7 (train)");
    }
    EXPECT_FALSE(is_asked(one));
    EXPECT_FALSE(is_asked(two));
    EXPECT_THAT(m_services.slurm.requests, Not(Contains(HasSubstr("cancel"))));
}

TEST_F(Stop, DoesNotAskWhenSlurmKnowsThatTheOtherHasEnded)
{
    run("train", 7, JobState::node_fail, 10min);
    run("train", 8, JobState::pending);
    EXPECT_EQ(stop({"train"}).err, "gpuq: run 8 (train) is withdrawn\n");
}

TEST_F(Stop, SaysThatNothingIsActive)
{
    const Use used = stop({});
    EXPECT_EQ(used.status, 2);
    EXPECT_EQ(used.err, "no run is active");
}

TEST_F(Stop, SaysThatARunHasEndedAlready)
{
    run("train", 7, JobState::running).ended({3, Cause::finished, "", now()});
    const Use used = stop({"train"});
    EXPECT_EQ(used.status, 0);
    EXPECT_EQ(used.err, "gpuq: run 7 (train) has ended already: it ended with status 3\n");
    EXPECT_THAT(m_services.slurm.requests, IsEmpty());
}

TEST_F(Stop, StopsAllThatAreNamedAndFailsForTheMissing)
{
    const RunOnDisk one = run("a", 7, JobState::running);
    const RunOnDisk two = run("b", 8, JobState::running);
    const Use used = stop({"a", "nosuch", "b"});
    EXPECT_EQ(used.status, 2);
    EXPECT_TRUE(is_asked(one));
    EXPECT_TRUE(is_asked(two));
    EXPECT_THAT(used.err, HasSubstr("no run 'nosuch'"));
}

TEST_F(Stop, TellsAScriptWhatBecameOfEach)
{
    run("a", 7, JobState::running);
    RunOnDisk gone = run("b", 8, JobState::completed);
    gone.ended({0, Cause::finished, "", now()});
    Globals globals;
    globals.json = true;
    const sweeps::Sweep sweep{"cal", {"lr"}, {}, 1, {}, fakes::some_run(now(), "cal", 9)};
    ASSERT_TRUE(sweeps::write_sweep(m_services.memory, sweep, {{"1"}, {"2"}}));
    const Use used = stop({"a", "nosuch", "b", "cal/2"}, globals);
    EXPECT_EQ(used.status, 2);
    EXPECT_EQ(used.err, "");
    EXPECT_EQ(members_in(used.out), documented_in("gpuq stop"));
    EXPECT_THAT(used.out, HasSubstr("\"outcome\": \"stopping\""));
    EXPECT_THAT(used.out, HasSubstr("\"outcome\": \"ended_before\""));
    EXPECT_THAT(used.out, HasSubstr("\"try\": 2"));
    EXPECT_THAT(used.out, HasSubstr("\"run\": \"nosuch\""));

    EXPECT_THAT(stop({"nosuch"}, globals).out, HasSubstr("\"runs\": []"));
}

TEST_F(Stop, TrustsALivingRunWhenSlurmIsSilent)
{
    const RunOnDisk one = run("train", 7, JobState::running);
    m_services.slurm.silent = true;
    const Use used = stop({"train"});
    EXPECT_EQ(used.status, 0);
    EXPECT_TRUE(is_asked(one));
    EXPECT_THAT(used.err, HasSubstr("the run itself has been notified"));
}

TEST_F(Stop, SaysThatAWaitingRunMayStayWhenSlurmIsSilent)
{
    const RunOnDisk one = run("train", 7, JobState::pending);
    m_services.slurm.silent = true;
    EXPECT_EQ(stop({"train"}).status, 120);
    EXPECT_TRUE(is_asked(one));
    EXPECT_THAT(m_services.slurm.requests,
                testing::ElementsAre("own_jobs")); // one timeout, not two
    // The next command that reaches Slurm cancels the job.
    m_services.slurm.silent = false;
    EXPECT_EQ(stop({"train"}).status, 0);
    EXPECT_EQ(m_services.slurm.jobs.front().state, JobState::cancelled);
}

TEST_F(Stop, FindsAJobThatNobodyWroteDown)
{
    const RunOnDisk one = run("train", 7, JobState::pending);
    ASSERT_TRUE(m_services.memory.remove(layout::job_json(one.key(), LinkNumber{1})));
    EXPECT_EQ(stop({"train"}).err, "gpuq: run 7 (train) is withdrawn\n");
}

TEST_F(Stop, LeavesWordForARunThatIsBeingSubmitted)
{
    const RunOnDisk one(m_services.memory, fakes::some_run(now() - 1s, "train"));
    const Use used = stop({"train"});
    EXPECT_EQ(used.status, 0);
    EXPECT_TRUE(is_asked(one));
    EXPECT_THAT(used.err, HasSubstr("is stopped as soon as Slurm has it"));
}

TEST_F(Stop, CancelsEvenWhenTheFolderTakesNoRequest)
{
    run("train", 7, JobState::running);
    m_services.memory.full = true;
    const Use used = stop({"train"});
    EXPECT_EQ(used.status, 0);
    EXPECT_THAT(used.err, HasSubstr("No space left on device"));
    EXPECT_THAT(m_services.slurm.requests, Contains("cancel 7"));
}

/// Cyd of the help desk calls gpuq by sudo, as the policy's helper.
class StopAsHelpDesk : public Stop {
protected:
    StopAsHelpDesk()
    {
        m_services.ruler.files["applied.yaml"] = "version: 1\n"
                                                 "helper: " +
                                                 user_name() +
                                                 "\n"
                                                 "help_desk: {users: cyd, may: stop}\n"
                                                 "pools: {all: {nodes: n1, gpus: 'k80:4'}}\n"
                                                 "queues: {gpu: {time: 2h, pools: all}}\n";
        m_services.variables = {{"SUDO_UID", "4002"}, {"SUDO_USER", "cyd"}};
        Job job;
        job.id = JobId{7};
        job.name = "train";
        job.uid = 4000;
        job.state = JobState::running;
        m_services.slurm.jobs = {job};
    }
};

TEST_F(StopAsHelpDesk, AJobThatHasEndedIsNotStopped)
{
    m_services.slurm.jobs.front().state = JobState::completed;
    const Use done = use(k_stop_verb, m_services, {"7"});
    EXPECT_EQ(done.status, 0);
    EXPECT_EQ(done.err, "gpuq: job 7 (train) has ended already\n");
}

} // namespace
} // namespace gpuq::cli
