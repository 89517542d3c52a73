// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/detach_step.h"

#include "cli/client/scripted_client.h"

#include <gmock/gmock.h>

namespace gpuq::cli {
namespace {

using ::testing::HasSubstr;

/// A run that was started at once, and a client that leaves it to itself.
class DetachStepTest : public ::testing::Test {
protected:
    DetachStepTest()
        : m_first(m_client.first_step())
        , m_run(fakes::some_run(m_client.services.time.now(), "notebook"))
    {
    }

    void start(const StepPatience& patience = {})
    {
        m_client.start(User::pipes, [=, this](Services& services, Signals& signals) -> Result<int> {
            TRY_ASSIGN(const auto left, detach_step(services, signals, m_run, JobId{7},
                                                    *m_client.first, /*quiet=*/false, patience));
            return left.value_or(0);
        });
    }

    std::string recorded_end() const
    {
        const auto text = m_client.store->read(layout::ended_json(m_run.key));
        return text ? *text : "";
    }

    ScriptedClient m_client;
    Supervisor& m_first;
    gpuq::Run m_run;
};

TEST_F(DetachStepTest, LeavesAGuardOnceTheSupervisorRuns)
{
    Supervisor& guard = m_client.guard();
    start();
    m_first.greet();
    EXPECT_EQ(m_first.receive<wire::Bye>(), wire::Bye{});
    guard.send(wire::Hello{});
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.requests(), "guard 1 of job 7, abandon, abandon") << "guard's and its own";
    EXPECT_EQ(m_client.out(), "");
    EXPECT_EQ(recorded_end(), "");
}

TEST_F(DetachStepTest, KeepsTheProgramsOutputToTheLog)
{
    Supervisor& guard = m_client.guard();
    m_first.greet();
    m_first.send(wire::Output{Stream::out, 0, "Jupyter is running\n"});
    start();
    guard.send(wire::Hello{});
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.out() + m_client.err(), "");
}

TEST_F(DetachStepTest, FreesTheGpusIfTheSupervisorWasNeverStarted)
{
    start();
    m_first.disconnect("srun: error: Unable to create step\n");
    EXPECT_EQ(m_client.status(), 125);
    EXPECT_EQ(m_client.err(), "run 7: srun: error: Unable to create step\n");
    EXPECT_EQ(m_client.requests(), "complete 7 125");
    EXPECT_THAT(recorded_end(), HasSubstr("not_started"));
}

TEST_F(DetachStepTest, FreesTheGpusIfTheSrunWasKilledMeanwhile)
{
    m_client.services.steps.first_step_died = true;
    Supervisor& guard = m_client.guard();
    m_first.greet();
    m_first.disconnect();
    guard.disconnect("srun: error: the job is ending\n");
    start();
    EXPECT_EQ(m_client.status(), 119);
    EXPECT_THAT(m_client.requests(), HasSubstr("complete 7 119"));
    EXPECT_THAT(recorded_end(), HasSubstr("lost"));
}

TEST_F(DetachStepTest, ReportsAnSrunThatHangsAndWaitsForIt)
{
    Supervisor& guard = m_client.guard();
    start({.notice = 50ms});
    ASSERT_TRUE(m_client.prints("has not started it on its node yet; waiting, Ctrl-C detaches"));
    m_first.greet();
    guard.send(wire::Hello{});
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(recorded_end(), "");
}

TEST_F(DetachStepTest, FreesTheGpusOfAnSrunThatHangsForLong)
{
    start({.notice = 10ms, .most = 100ms});
    EXPECT_EQ(m_client.status(), 125);
    EXPECT_THAT(m_client.err(),
                HasSubstr("run 7: Slurm has not started it on its node; try again"));
    EXPECT_EQ(m_client.requests(), "complete 7 125");
    EXPECT_THAT(recorded_end(), HasSubstr("not_started"));
}

TEST_F(DetachStepTest, LetsARunThatHasEndedEnd)
{
    m_first.greet();
    m_first.send(wire::Ended{});
    start();
    (void)m_first.receive<wire::Bye>();
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_EQ(m_client.requests(), "") << "no guard, and its srun ends by itself";
}

TEST_F(DetachStepTest, LeavesItsSrunAtASignalBeforeTheSupervisorRuns)
{
    for (const auto& [signal, status] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 129)}) {
        ScriptedClient client;
        Supervisor& first = client.first_step();
        client.start(User::pipes, [&](Services& services, Signals& signals) -> Result<int> {
            write_own("waiting\n");
            TRY_ASSIGN(const auto left,
                       detach_step(services, signals, m_run, JobId{7}, *client.first, false));
            return left.value_or(0);
        });
        ASSERT_TRUE(client.prints("waiting"));
        client.signal(signal);
        EXPECT_EQ(client.status(), status);
        EXPECT_EQ(client.requests(), "");
        EXPECT_TRUE(first.is_left());
    }
}

} // namespace
} // namespace gpuq::cli
