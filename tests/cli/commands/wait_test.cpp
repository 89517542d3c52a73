// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "core/layout.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Calls `event` when a file is read for the `at`th time.
class EventfulStore : public fakes::MemoryStore {
public:
    std::string path;
    int at = 0;
    std::function<void()> event;

    Result<std::string> read(const std::string& name) override
    {
        if (name == path && --at == 0) {
            event();
        }
        return MemoryStore::read(name);
    }
};

class Wait : public testing::Test {
protected:
    Wait() { m_services.directory = &m_store; }

    fakes::RunOnDisk run(const std::string& name, JobId job)
    {
        const Time begun = m_services.time.now() - 10min;
        fakes::RunOnDisk made(m_store,
                              fakes::some_run(begun, name, static_cast<unsigned char>(job.value)));
        made.submitted(job).started(job, begun).beat(job, m_services.time.now());
        return made;
    }
    Ending ending(int status)
    {
        return {status, status == 0 ? Cause::finished : Cause::crashed, "", m_services.time.now()};
    }
    Use wait(const std::vector<std::string>& arguments, Globals globals = {})
    {
        return use(k_wait_verb, m_services, arguments, std::move(globals));
    }

    FakeServices m_services;
    EventfulStore m_store;
};

TEST_F(Wait, ExitsWithTheStatusOfARunThatHasEnded)
{
    run("train", JobId{7}).ended(ending(3));
    const Use done = wait({"train"});
    EXPECT_EQ(done.status, 3);
    EXPECT_THAT(done.err, HasSubstr("run 7 (train) "));
    EXPECT_EQ(done.out, "");
    EXPECT_EQ(m_services.slurm_opened, 0);
}

TEST_F(Wait, ExitsWithTheStatusOfTheFirstArgumentThatFailed)
{
    run("good", JobId{7}).ended(ending(0));
    run("bad", JobId{8}).ended(ending(4));
    run("worse", JobId{9}).ended(ending(5));
    EXPECT_EQ(wait({"good"}).status, 0);
    EXPECT_EQ(wait({"good", "worse", "bad"}).status, 5);
    EXPECT_EQ(wait({"bad", "worse"}).status, 4);
}

TEST_F(Wait, ReturnsWhenTheRunEnds)
{
    auto one = run("train", JobId{7});
    m_store.path = layout::journal(one.key(), LinkNumber{1});
    m_store.at = 3;
    m_store.event = [&] { one.ended(ending(6)); };
    const Use done = wait({"train"});
    EXPECT_EQ(done.status, 6);
    EXPECT_LT(m_store.at, 1) << "after the third query";
    EXPECT_EQ(m_services.slurm_opened, 0) << "the disk shows that it runs";
}

TEST_F(Wait, GivesANoticeOfAnEndThatItHasSeen)
{
    m_services.set.notify = {"tell", "{event} {run}: {text}"};
    run("before", JobId{6}).ended(ending(0));
    auto one = run("train", JobId{7});
    m_store.path = layout::journal(one.key(), LinkNumber{1});
    m_store.at = 3;
    m_store.event = [&] { one.ended(ending(134)); };
    EXPECT_EQ(wait({"before", "train"}).status, 134);
    const auto& given = m_services.machine.unattended;
    ASSERT_EQ(given.size(), 1U) << "the other one had ended before";
    EXPECT_EQ(given[0].arguments[1], "failure 7: run 7 (train) was killed by signal 6 (SIGABRT)");
}

TEST_F(Wait, KeepsWaitingForARunInTheQueue)
{
    const Time made = m_services.time.now() - 1min;
    fakes::RunOnDisk one(m_store, fakes::some_run(made, "train", 1));
    one.submitted(JobId{7});
    Job job;
    job.id = JobId{7};
    job.comment = job_comment(one.key());
    job.state = JobState::pending;
    m_services.slurm.jobs = {job};
    m_store.path = layout::journal(one.key(), LinkNumber{1});
    m_store.at = 4; // in between only the disk is read, which does not show the state
    m_store.event = [&] { one.ended(ending(6)); };
    EXPECT_EQ(wait({"train"}).status, 6);
    EXPECT_LT(m_store.at, 1);
}

TEST_F(Wait, ReturnsWithTheFirstThatEndsIfAnyWillDo)
{
    run("long", JobId{7});
    run("short", JobId{8}).ended(ending(2));
    const Use done = wait({"--any", "long", "short"});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, AllOf(HasSubstr("8 (short)"), Not(HasSubstr("7 (long)"))));
}

TEST_F(Wait, WaitsForAllActiveRunsWithoutAnArgument)
{
    EXPECT_EQ(wait({}).status, 0) << "there is none";
    run("before", JobId{6}).ended(ending(9));
    auto one = run("train", JobId{7});
    m_store.path = layout::journal(one.key(), LinkNumber{1});
    m_store.at = 2;
    m_store.event = [&] { one.ended(ending(0)); };
    const Use done = wait({});
    EXPECT_EQ(done.status, 0) << "not that of a run that had ended before";
    EXPECT_THAT(done.err, AllOf(HasSubstr("7 (train)"), Not(HasSubstr("6 (before)"))));
}

TEST_F(Wait, ExitsWithTheStatusOfARunThatFailsWithoutAnArgument)
{
    auto good = run("good", JobId{7});
    auto bad = run("bad", JobId{8});
    m_store.path = layout::journal(good.key(), LinkNumber{1});
    m_store.at = 2;
    m_store.event = [&] {
        good.ended(ending(0));
        bad.ended(ending(5));
    };
    EXPECT_EQ(wait({}).status, 5);
}

TEST_F(Wait, WaitsForAllPartsOfAnArray)
{
    const auto part = [&](std::uint32_t id, const std::string& called, JobState state, int code) {
        Job job;
        job.id = JobId{id};
        job.name = "sweep";
        job.called = called;
        job.partition = "gpu";
        job.state = state;
        job.exit_status = code;
        return job;
    };
    m_services.slurm.jobs = {part(23, "20_1", JobState::failed, 5),
                             part(20, "20_2", JobState::completed, 0)};
    const Use done = wait({"20"});
    EXPECT_NE(done.status, 0);
    EXPECT_THAT(done.err, AllOf(HasSubstr("20_1 (sweep)"), HasSubstr("20_2 (sweep)")));
}

TEST_F(Wait, PrintsADocument)
{
    run("train", JobId{7}).ended(ending(3));
    Globals json;
    json.json = true;
    const Use done = wait({"train"}, json);
    EXPECT_EQ(done.status, 3);
    EXPECT_EQ(done.err, "");
    EXPECT_THAT(done.out, AllOf(HasSubstr("\"runs\":"), HasSubstr("\"name\": \"train\"")));
}

TEST_F(Wait, RefusesAnUnknownRunBeforeItWaits)
{
    run("train", JobId{7});
    EXPECT_EQ(wait({"train", "nobody"}).status, 2);
}

} // namespace
} // namespace gpuq::cli
