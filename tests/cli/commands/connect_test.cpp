// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "ports/job.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Connect : public testing::Test {
protected:
    Connect()
    {
        // If the test is run by hand, stdin is a terminal.
        const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::dup2(nothing, STDIN_FILENO);
        ::close(nothing);
    }

    FakeServices m_services;

    Time now() { return m_services.time.now(); }

    RunOnDisk run(JobState state)
    {
        RunOnDisk run(m_services.memory, fakes::some_run(now() - 5min, "train"));
        run.submitted(JobId{7});
        Job job;
        job.id = JobId{7};
        job.comment = job_comment(run.key());
        job.state = state;
        m_services.slurm.jobs.push_back(job);
        if (state == JobState::running) {
            run.started(JobId{7}, now());
        }
        return run;
    }

    Use connect(const std::vector<std::string>& arguments)
    {
        return use(k_connect_verb, m_services, arguments);
    }
};

TEST_F(Connect, StartsAStepInTheJob)
{
    const RunOnDisk one = run(JobState::running);
    const Use used = connect({"train"});
    EXPECT_THAT(m_services.slurm.requests, ElementsAre("start_step 7"));
    EXPECT_THAT(m_services.slurm.steps.front(),
                ElementsAre("/gpuq-supervisor", "connect", m_services.memory.root(),
                            one.key().text(), "1"));
    // The fake step prints nothing.
    EXPECT_EQ(used.status, 125);
    EXPECT_EQ(used.out, "");
    EXPECT_THAT(used.err, HasSubstr("no connection to run 7 (train)"));
}

TEST_F(Connect, PrintsWhatSshHasToKnow)
{
    const RunOnDisk one = run(JobState::running);
    const Use used = connect({"--config", "train"});
    EXPECT_EQ(used.status, 0);
    EXPECT_THAT(used.out, HasSubstr("\nHost gpuq-7 gpuq-train\n"));
    EXPECT_THAT(used.out,
                HasSubstr("ProxyCommand /usr/bin/gpuq connect " + one.key().text() + "\n"));
    EXPECT_THAT(m_services.slurm.requests, IsEmpty());
    EXPECT_THAT(m_services.memory.files,
                Contains(testing::Key(layout::connect_file(one.key(), "identity"))));
}

TEST_F(Connect, KeepsTheClusterThatWasChosen)
{
    run(JobState::running);
    Globals globals;
    globals.cluster = "lab";
    EXPECT_THAT(use(k_connect_verb, m_services, {"--config", "7"}, globals).out,
                HasSubstr("ProxyCommand /usr/bin/gpuq --cluster lab connect "));
}

TEST_F(Connect, PrintsItForARunThatStillWaits)
{
    run(JobState::pending);
    EXPECT_EQ(connect({"--config", "7"}).status, 0);
    const Use used = connect({"7"});
    EXPECT_NE(used.status, 0);
    EXPECT_THAT(used.err, HasSubstr("run 7 (train) has no node yet: it is waiting"));
    EXPECT_THAT(m_services.slurm.steps, IsEmpty());
}

TEST_F(Connect, RefusesARunThatHasEndedAndClearsItsKeys)
{
    RunOnDisk one = run(JobState::running);
    ASSERT_EQ(connect({"--config", "7"}).status, 0);
    one.ended({3, Cause::finished, "", now()});
    const Use used = connect({"7"});
    EXPECT_EQ(used.status, 2);
    EXPECT_EQ(used.err, "run 7 (train) has ended: it ended with status 3");
    EXPECT_FALSE(m_services.memory.directories.contains(layout::connect_dir(one.key())));
}

TEST_F(Connect, WantsOneRun)
{
    EXPECT_THAT(connect({}).err, HasSubstr("connect: missing run"));
    EXPECT_THAT(connect({"1", "2"}).err, HasSubstr("one run at a time"));
    EXPECT_THAT(connect({"nosuch"}).err, HasSubstr("no run 'nosuch'"));
}

} // namespace
} // namespace gpuq::cli
