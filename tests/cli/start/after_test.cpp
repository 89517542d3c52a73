// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/after.h"

#include "cli/fake_services.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class After : public testing::Test {
protected:
    After()
        : m_run(fakes::some_run(m_services.time.now() - 1h, "first"))
    {
    }

    fakes::RunOnDisk record()
    {
        return fakes::RunOnDisk(m_services.memory, m_run).submitted(JobId{7});
    }
    Ending ending(int status) { return {status, Cause::finished, "", m_services.time.now()}; }
    /// The number of the job, `none`, or the error.
    std::string awaited()
    {
        const auto job = job_to_await(m_services, m_services.memory, "first");
        return !job ? job.error().text : *job ? std::to_string((*job)->value) : "none";
    }

    FakeServices m_services;
    gpuq::Run m_run;
};

TEST_F(After, AwaitsTheJobOfARun)
{
    record();
    EXPECT_EQ(awaited(), "7");
}

TEST_F(After, DoesNotAwaitWhatHasSucceeded)
{
    record().ended(ending(0));
    EXPECT_EQ(awaited(), "none");
}

TEST_F(After, RefusesWhatHasFailed)
{
    record().ended(ending(3));
    EXPECT_THAT(awaited(), HasSubstr("--after first: run 7 has already ended with exit status 3"));
}

TEST_F(After, RefusesAChainThatHasNotEnded)
{
    m_run.request.walltime = 10h;
    m_run.request.chain = Chain{};
    m_run.request.chain->link = 1h;
    auto chain = record();
    EXPECT_EQ(awaited(), "--after first: run 7 continues in several jobs, and Slurm can wait for "
                         "one only: gpuq wait first && gpuq run ...");
    chain.ended(ending(0));
    EXPECT_EQ(awaited(), "none");
}

TEST_F(After, AwaitsAChainOfOneLink)
{
    m_run.request.walltime = 1h;
    m_run.request.chain = Chain{};
    m_run.request.chain->link = 1h;
    record();
    EXPECT_EQ(awaited(), "7");
}

TEST_F(After, RefusesARunOfAnotherCluster)
{
    m_run.cluster = "elsewhere";
    record();
    EXPECT_THAT(awaited(), HasSubstr("run 7 is on cluster elsewhere, and a job can only wait"));
}

} // namespace
} // namespace gpuq::cli
