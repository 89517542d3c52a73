// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/waiting.h"

#include "cli/client/scripted_client.h"
#include "ports/job.h"
#include "runs/insight/overview_record.h"
#include "runs/records/record.h"

#include <gmock/gmock.h>

namespace gpuq::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WaitingTest : public ::testing::Test {
protected:
    WaitingTest()
    {
        Job job;
        job.id = JobId{7};
        job.state = JobState::pending;
        job.reason = "Resources";
        m_services.slurm.jobs = {job};
        m_options.terminal = true;
    }

    Job& job() { return m_services.slurm.jobs.front(); }

    /// Waits in this process; `signal` is pending from the beginning.
    std::optional<int> wait(int signal = 0)
    {
        Signals signals;
        if (signal != 0) {
            ::raise(signal);
        }
        testing::internal::CaptureStderr();
        const auto waited = wait_for_start(m_services, signals, m_run, JobId{7}, m_options);
        m_err = testing::internal::GetCapturedStderr();
        EXPECT_TRUE(waited);
        return waited ? waited->leave : -1;
    }

    std::optional<Ending> recorded_end()
    {
        const auto text = m_services.memory.read(layout::ended_json(m_run.key));
        return text ? std::optional(ending_from_json(*text).value()) : std::nullopt;
    }

    FakeServices m_services;
    gpuq::Run m_run = fakes::some_run(m_services.time.now(), "train");
    WaitingOptions m_options;
    std::string m_err;
};

TEST_F(WaitingTest, EndsWhenTheSupervisorHasWrittenItsFirstLine)
{
    m_services.memory.append(layout::journal(m_run.key, LinkNumber{1}), "{}\n");
    EXPECT_EQ(wait(), std::nullopt);
    EXPECT_EQ(m_err, "");
    EXPECT_THAT(m_services.slurm.requests, ElementsAre()) << "the disk is sufficient";
}

TEST_F(WaitingTest, EndsWhenSlurmReportsARunningJob)
{
    job().state = JobState::running;
    EXPECT_EQ(wait(), std::nullopt);
}

TEST_F(WaitingTest, GivesANoticeOfTheStartAfterALongWait)
{
    m_services.set.notify = {"tell", "{text}"};
    m_services.memory.append(layout::journal(m_run.key, LinkNumber{1}), "{}\n");
    EXPECT_EQ(wait(), std::nullopt);
    EXPECT_TRUE(m_services.machine.unattended.empty()) << "it has not waited for long";
    m_options.notice_after = std::chrono::milliseconds(-1);
    EXPECT_EQ(wait(), std::nullopt);
    ASSERT_EQ(m_services.machine.unattended.size(), 1U);
    EXPECT_EQ(m_services.machine.unattended[0].arguments[1], "run 7 (train) has started");
}

TEST_F(WaitingTest, EndsWhenTheRunIsOver)
{
    m_services.memory.append(layout::ended_json(m_run.key), "{}");
    EXPECT_EQ(wait(), std::nullopt);
    m_services.memory.files.clear();
    m_services.slurm.jobs.clear();
    EXPECT_EQ(wait(), std::nullopt) << "Slurm no longer knows the job";
}

TEST_F(WaitingTest, WithdrawsTheRequestAtCtrlC)
{
    EXPECT_EQ(wait(SIGINT), 130);
    EXPECT_THAT(m_err, HasSubstr("gpuq: waiting: "));
    EXPECT_THAT(m_err, HasSubstr("gpuq: run 7 withdrawn (Ctrl-C)\n"));
    EXPECT_THAT(m_services.slurm.requests, ElementsAre("own_jobs", "cancel 7"));
    EXPECT_EQ(recorded_end()->detail, "withdrawn: Ctrl-C");
    EXPECT_EQ(recorded_end()->status, 130);
}

TEST_F(WaitingTest, LeavesTheStopRequestIfSlurmIsSilent)
{
    m_services.slurm.silent = true;
    EXPECT_EQ(wait(SIGINT), 130);
    EXPECT_EQ(m_err, "gpuq: waiting; Slurm does not answer\n"
                     "gpuq: Slurm does not answer; the request is withdrawn as soon as Slurm "
                     "answers or the run starts\n");
    EXPECT_TRUE(
        m_services.memory.files.contains(layout::inbox(m_run.key) + "/" + layout::k_stop_request));
    EXPECT_EQ(recorded_end(), std::nullopt);
}

TEST_F(WaitingTest, KeepsTheRequestWhenTheTerminalHangsUp)
{
    EXPECT_EQ(wait(SIGHUP), 129);
    EXPECT_THAT(m_err, HasSubstr("gpuq: detached; run 7 stays in the queue. Back to it: gpuq "
                                 "attach 7\n"));
    EXPECT_THAT(m_services.slurm.requests, ElementsAre("own_jobs"));
}

TEST_F(WaitingTest, KeepsTheRequestOfAVisitor)
{
    m_options.terminal = false;
    m_options.visitor = true;
    EXPECT_EQ(wait(SIGTERM), 129);
    EXPECT_EQ(recorded_end(), std::nullopt);
}

TEST_F(WaitingTest, WithdrawsTheRequestOfAScriptThatIsTerminated)
{
    m_options.terminal = false;
    EXPECT_EQ(wait(SIGTERM), 128 + SIGTERM);
    EXPECT_EQ(recorded_end()->detail, "withdrawn: signal 15");
}

TEST_F(WaitingTest, OnlyDetachesFromALaterLink)
{
    m_options.link = LinkNumber{2};
    job().reason = "Dependency";
    EXPECT_EQ(wait(SIGINT), 130);
    EXPECT_EQ(m_err, "gpuq: waiting: the previous link is being cleaned up\n"
                     "gpuq: detached; run 7 continues. Back to it: gpuq attach 7, to end it: gpuq "
                     "stop 7\n");
    EXPECT_THAT(m_services.slurm.requests, ElementsAre("own_jobs"));
}

TEST_F(WaitingTest, WithdrawsTheRequestAfterMaxWait)
{
    m_options.max_wait = 1s;
    EXPECT_EQ(wait(), 122);
    EXPECT_THAT(m_err, HasSubstr("gpuq: run 7 withdrawn (--max-wait has passed)\n"));
    EXPECT_EQ(recorded_end()->status, 122);
}

TEST_F(WaitingTest, ShowsThePlannedStart)
{
    job().started_at = m_services.time.now() + 90min;
    (void)wait(SIGHUP);
    EXPECT_THAT(m_err, HasSubstr("; expected start "));
    EXPECT_THAT(m_err, HasSubstr(" (in 1 h 30 min)\n"));
}

/// From the overview that another process keeps; a planned start is no reason for a query.
TEST_F(WaitingTest, ShowsTheForecastWithoutFurtherRequests)
{
    const Time now = m_services.time.now();
    job().started_at = now + 90min;
    job().priority = 1;
    Overview kept;
    kept.cluster = "lab";
    kept.whole_at = now - 1min;
    kept.jobs.push_back({job(), {}, {}, StartForecast{now + 20min, now + 60min, ""}});
    ASSERT_TRUE(m_services.memory.write(layout::overview("lab"), to_json(kept)));
    (void)wait(SIGHUP);
    EXPECT_THAT(m_err, ::testing::ContainsRegex("; 50 % by .*, 90 % by .*; expected start "));
    EXPECT_THAT(m_services.slurm.requests, ElementsAre("own_jobs"));
    kept.whole_at = now - 1h;
    ASSERT_TRUE(m_services.memory.write(layout::overview("lab"), to_json(kept)));
    (void)wait(SIGHUP);
    EXPECT_THAT(m_err, ::testing::Not(HasSubstr("50 %"))) << "too old";
}

TEST_F(WaitingTest, ShowsTheLatestStartBesideTheForecastOfOneHalf)
{
    const Time now = m_services.time.now();
    job().priority = 1;
    job().reason = "Resources";
    StartEstimate estimate;
    estimate.at = now + 90min;
    estimate.after = JobId{3};
    Overview kept;
    kept.cluster = "lab";
    kept.whole_at = now - 1min;
    kept.jobs.push_back({job(), {}, estimate, StartForecast{now + 20min, now + 60min, ""}});
    ASSERT_TRUE(m_services.memory.write(layout::overview("lab"), to_json(kept)));
    (void)wait(SIGHUP);
    EXPECT_THAT(m_err, ::testing::ContainsRegex("no GPU is free; 50 % by [0-9:]*; by [0-9:]* at "
                                                "the latest .time limit of job 3"));
}

TEST_F(WaitingTest, SuggestsWhyForARequestThatIsTooLarge)
{
    job().reason = "PartitionTimeLimit";
    (void)wait(SIGHUP);
    EXPECT_THAT(m_err, HasSubstr("; see gpuq why 7\n"));
}

TEST_F(WaitingTest, IsSilentIfQuiet)
{
    m_options.quiet = true;
    EXPECT_EQ(wait(SIGINT), 130);
    EXPECT_EQ(m_err, "");
}

} // namespace
} // namespace gpuq::cli
