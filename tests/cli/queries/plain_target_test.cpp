// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/plain_target.h"

#include "cli/fake_services.h"
#include "fakes/memory_store.h"
#include "runs/insight/plain_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A plain job that was running and is no longer in Slurm's queue.
class ForgottenJob : public testing::Test {
protected:
    ForgottenJob()
    {
        OwnJob own;
        own.job.id = JobId{20};
        own.job.state = JobState::running;
        m_known = plain_status(own, "centre", m_services.time.now());
    }

    RunStatus now() { return plain_job_now(m_services, m_store, m_known).value(); }

    PastJob record(JobState state)
    {
        return {JobId{20},
                "hand",
                ::getuid(),
                "",
                state,
                3,
                {},
                m_services.time.now() - 1h,
                m_services.time.now()};
    }

    FakeServices m_services;
    fakes::MemoryStore m_store;
    RunStatus m_known{RunKey::make(Time{}, {})};
};

TEST_F(ForgottenJob, HasTheEndThatAccountingReports)
{
    m_services.past.past[JobId{20}] = record(JobState::failed);
    EXPECT_EQ(now().state, RunState::ended);
    EXPECT_EQ(now().ending->status, 3);
}

TEST_F(ForgottenJob, IsLostIfAccountingDoesNotKnowItEither)
{
    EXPECT_EQ(now().ending->cause, Cause::lost);
    EXPECT_THAT(now().ending->detail, HasSubstr("neither Slurm nor its accounting"));
    m_services.past.past[JobId{20}] = record(JobState::failed);
    m_services.past.past[JobId{20}].uid = ::getuid() + 1; // ids are reused
    EXPECT_EQ(now().ending->cause, Cause::lost);
}

TEST_F(ForgottenJob, HasAnUnknownEndUntilAccountingReportsIt)
{
    m_services.past.silent = true;
    EXPECT_EQ(now().state, RunState::ended);
    EXPECT_EQ(now().ending, std::nullopt);
    m_services.past.silent = false;
    m_services.past.past[JobId{20}] = record(JobState::running);
    EXPECT_EQ(now().ending, std::nullopt);
}

} // namespace
} // namespace gpuq::cli
