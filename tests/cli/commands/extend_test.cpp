// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/json_page.h"
#include "cli/queries/site_context.h"
#include "core/layout.h"
#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A run `train` of 2 h in queue gpu, job 7. Queues: gpu (12 h) and long (2 days).
class Extend : public testing::Test {
protected:
    Extend()
        : m_run(m_services.memory, fakes::some_run(m_services.time.now() - 10min, "train", 1))
    {
        m_run.submitted(JobId{7});
        Job job;
        job.id = JobId{7};
        job.comment = job_comment(m_run.key());
        job.state = JobState::pending;
        job.partition = "gpu";
        job.walltime = 2h;
        job.batch = true;
        m_services.slurm.jobs.push_back(job);
        m_services.slurm.queues = {queue("gpu", 12h), queue("long", 48h)};
    }

    static Partition queue(const std::string& name, std::chrono::minutes limit)
    {
        Partition queue;
        queue.name = name;
        queue.max_time = limit;
        return queue;
    }

    void runs()
    {
        m_run.started(JobId{7}, m_services.time.now() - 5s);
        m_services.slurm.jobs.front().state = JobState::running;
    }

    Use extend(const std::vector<std::string>& arguments, const Globals& globals = {})
    {
        return use(k_extend_verb, m_services, arguments, globals);
    }

    std::optional<std::chrono::minutes> limit() { return m_services.slurm.jobs.front().walltime; }
    bool is_kept() { return m_services.memory.files.contains(layout::walltime_json(m_run.key())); }
    std::string listed() { return use(k_ls_verb, m_services, {}).out; }

    FakeServices m_services;
    RunOnDisk m_run;
};

TEST_F(Extend, AddsToTheLimitOfAWaitingRun)
{
    const Use result = extend({"train", "90m"});
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.err, "gpuq: run 7 (train) has 3 h 30 min, was 2 h\n");
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(limit(), 210min);
    EXPECT_EQ(extend({"7", "+1h"}).status, 0);
    EXPECT_EQ(limit(), 270min);
}

TEST_F(Extend, TheListShowsTheNewLimitAlsoWhenSlurmIsNotAsked)
{
    extend({"train", "90m"});
    EXPECT_THAT(listed(), HasSubstr("/ 3 h 30 min"));
    runs();
    m_services.slurm.silent = true;
    EXPECT_THAT(listed(), HasSubstr("/ 3 h 30 min"));
    EXPECT_THAT(to_json(m_run.run()), HasSubstr("\"walltime_minutes\": 120")); // written once
    EXPECT_EQ(m_services.memory.files.at(layout::run_json(m_run.key())), to_json(m_run.run()));
}

TEST_F(Extend, SlurmsOwnLimitWinsOverWhatIsKept)
{
    extend({"train", "90m"});
    m_services.slurm.jobs.front().walltime = 5h; // set by an operator
    EXPECT_THAT(listed(), HasSubstr("/ 5 h"));
    EXPECT_THAT(extend({"train", "1h"}).err, HasSubstr("has 6 h, was 5 h"));
}

TEST_F(Extend, BeyondTheQueueTheOtherQueueIsNamed)
{
    const Use result = extend({"train", "11h"});
    EXPECT_EQ(result.status, 121);
    EXPECT_THAT(result.err, HasSubstr("queue gpu takes at most 12 h; long takes 13 h"));
    EXPECT_EQ(limit(), 120min);
    EXPECT_FALSE(is_kept());
    EXPECT_THAT(extend({"train", "7d"}).err, HasSubstr("no queue takes 7 days 2 h"));
}

TEST_F(Extend, ARunningRunsOwnerIsToldWhoCan)
{
    runs();
    const Use result = extend({"train", "1h"});
    EXPECT_EQ(result.status, 121);
    EXPECT_THAT(result.err, HasSubstr("scontrol update JobId=7 TimeLimit="));
    EXPECT_THAT(result.err, HasSubstr("3:00:00"));
    EXPECT_FALSE(is_kept());
    EXPECT_THAT(listed(), HasSubstr("/ 2 h"));
}

TEST_F(Extend, AnOperatorsChangeOfARunningRunIsKept)
{
    runs();
    m_services.slurm.may_lengthen = true;
    EXPECT_EQ(extend({"train", "1h"}).status, 0);
    EXPECT_THAT(listed(), HasSubstr("/ 3 h"));
}

TEST_F(Extend, SlurmsWordsForARefusal)
{
    m_services.slurm.refusal = "QOS limit";
    const Use result = extend({"train", "1h"});
    EXPECT_EQ(result.status, 121);
    EXPECT_THAT(result.err, HasSubstr("QOS limit"));
    EXPECT_THAT(result.err, Not(HasSubstr("scontrol")));
    EXPECT_FALSE(is_kept());
}

TEST_F(Extend, ALostAnswerIsNotASuccess)
{
    m_services.slurm.lost_answers = 1;
    const Use result = extend({"train", "1h"});
    EXPECT_EQ(result.status, 120);
    EXPECT_THAT(result.err, HasSubstr("may have changed"));
    EXPECT_FALSE(is_kept());
    EXPECT_THAT(listed(), HasSubstr("/ 3 h")); // read from Slurm
}

TEST_F(Extend, ASilentSlurmIsUnreachable)
{
    m_services.slurm.silent = true;
    EXPECT_EQ(extend({"train", "1h"}).status, 120);
}

TEST_F(Extend, AnEndedRunHasNoMoreTime)
{
    m_run.ended({0, Cause::finished, "", m_services.time.now()});
    const Use result = extend({"train", "1h"});
    EXPECT_EQ(result.status, 121);
    EXPECT_THAT(result.err, HasSubstr("has ended already"));
    EXPECT_THAT(m_services.slurm.requests, IsEmpty());
}

TEST_F(Extend, WantsARunAndATime)
{
    for (const auto& arguments : std::vector<std::vector<std::string>>{{},
                                                                       {"train"},
                                                                       {"train", "2:30"},
                                                                       {"train", "1h", "x"},
                                                                       {"train", "0"},
                                                                       {"no", "1h"}}) {
        EXPECT_EQ(extend(arguments).status, 2);
    }
    EXPECT_EQ(limit(), 120min);
}

TEST_F(Extend, TheJsonHasBothLimits)
{
    Globals globals;
    globals.json = true;
    const Use result = extend({"train", "1h"}, globals);
    EXPECT_THAT(result.out, HasSubstr("\"time_limit\": 10800"));
    EXPECT_THAT(result.out, HasSubstr("\"time_limit_before\": 7200"));
    EXPECT_EQ(members_in(result.out), documented_in("gpuq extend"));
}

TEST_F(Extend, SavedIsForTheHelper)
{
    EXPECT_EQ(extend({"--saved", "train", "1h"}).status, 2);
    EXPECT_EQ(limit(), 120min);
}

/// The run has two hours in links of one. The first one has run for ten minutes, as job 7.
class ExtendLink : public Extend {
protected:
    ExtendLink()
    {
        gpuq::Run run = m_run.run();
        run.request.chain.emplace();
        run.request.chain->link = 1h;
        m_services.memory.files[layout::run_json(run.key)] = to_json(run);
        m_run.started(JobId{7}, m_services.time.now() - 10min);
        m_run.beat(JobId{7}, m_services.time.now());
        Job& job = m_services.slurm.jobs.front();
        job.state = JobState::running;
        job.walltime = 1h;
        m_services.slurm.may_lengthen = true;
    }
};

TEST_F(ExtendLink, ItsJobGetsMoreTimeAndItsRunDoesNot)
{
    EXPECT_EQ(extend({"--link", "train", "1h"}).err,
              "gpuq: link 1 of run 7 (train) has 2 h, was 1 h\n");
    EXPECT_EQ(limit(), 120min);
    EXPECT_FALSE(is_kept());
    const std::string file = layout::extended_file(m_run.key(), LinkNumber{1});
    EXPECT_EQ(m_services.memory.files[file], "120 60\n") << "for its supervisor";
}

TEST_F(ExtendLink, WithoutTheOptionItsRunGetsMoreTimeAndItsJobDoesNot)
{
    EXPECT_EQ(extend({"train", "1h"}).err,
              "gpuq: run 7 (train) has 3 h, was 2 h, over all its links\n");
    EXPECT_EQ(limit(), 60min);
    EXPECT_TRUE(is_kept());
}

TEST_F(ExtendLink, NotBeyondTheTimeOfItsRun)
{
    const Use result = extend({"--link", "train", "61m"});
    EXPECT_EQ(result.status, 121);
    EXPECT_THAT(result.err, HasSubstr("has 1 h 50 min left over all its links, and this link ends "
                                      "in 50 min"));
    EXPECT_EQ(limit(), 60min);
    extend({"train", "1h"});
    EXPECT_EQ(extend({"--link", "train", "61m"}).status, 0);
}

TEST_F(ExtendLink, TheRecordedEndCounts)
{
    Event changed;
    changed.kind = Event::Kind::limit_changed;
    changed.at = m_services.time.now();
    changed.to = std::chrono::floor<std::chrono::seconds>(m_services.time.now() + 100min)
                     .time_since_epoch()
                     .count();
    m_run.event(changed);
    EXPECT_THAT(extend({"--link", "train", "11m"}).err, HasSubstr("this link ends in 1 h 40 min"));
    EXPECT_EQ(extend({"--link", "train", "9m"}).status, 0);
}

TEST_F(ExtendLink, NotAfterTheNoticeToSave)
{
    Event noticed;
    noticed.kind = Event::Kind::noticed;
    noticed.at = m_services.time.now();
    m_run.event(noticed);
    const Use result = extend({"--link", "train", "1h"});
    EXPECT_EQ(result.status, 121);
    EXPECT_THAT(result.err, HasSubstr("link 1 of run 7 (train) is ending"));
    EXPECT_EQ(limit(), 60min);
}

const std::string k_policy = "version: 1\n"
                             "pools:\n"
                             "  class: {nodes: 'c[1-3]', gpus: 'a10:2'}\n"
                             "queues:\n"
                             "  gpu: {time: 2h, pools: class, extend: {by: 1h, times: 2, if: "
                             "nobody_waits}}\n"
                             "  other: {time: 12h, pools: class}\n";

/// Ada calls gpuq by sudo, as the policy's helper, for her job 7 on c1.
class ExtendByRule : public Extend {
protected:
    ExtendByRule()
    {
        in_force(k_policy);
        m_services.variables = {{"SUDO_UID", "4000"}, {"SUDO_USER", "ada"}};
        m_services.slurm.may_lengthen = true;
        Job& job = m_services.slurm.jobs.front();
        job.state = JobState::running;
        job.started_at = m_services.time.now() - 1h;
        job.uid = 4000;
        job.qos = "gpuq_gpu";
        job.nodes = "c1";
    }

    void in_force(const std::string& policy, const std::string& helper = user_name())
    {
        m_services.ruler.files["applied.yaml"] = policy + "helper: " + helper + "\n";
    }

    Job waiting(std::uint32_t uid, const std::string& partition, const std::string& reason)
    {
        Job job;
        job.id = JobId{9};
        job.state = JobState::pending;
        job.uid = uid;
        job.partition = partition;
        job.reason = reason;
        job.priority = 100;
        return job;
    }

    Reservation reserved(const std::string& nodes, std::chrono::minutes from)
    {
        Reservation one;
        one.name = "course";
        one.nodes = nodes;
        one.start = m_services.time.now() + from;
        one.end = one.start + 2h;
        return one;
    }
};

TEST_F(ExtendByRule, AnAccountThatIsReachedBySudoExtendsItsOwnRuns)
{
    in_force(k_policy, "gpuq-ops");
    m_services.slurm.may_lengthen = false;
    m_services.slurm.jobs.front().state = JobState::pending;
    EXPECT_EQ(extend({"train", "1h"}).err, "gpuq: run 7 (train) has 3 h, was 2 h\n");
}

TEST_F(ExtendByRule, WaitingForTheLimitOfAllCountsAsWaiting)
{
    auto& jobs = m_services.slurm.jobs;
    jobs.front().account = "lab";
    Job other = waiting(4001, "gpu", "QOSGrpGRES");
    other.qos = "gpuq_gpu";
    jobs.push_back(other);
    EXPECT_THAT(extend({"7", "1h"}).err, HasSubstr("job 9 does"));
    jobs.back().qos = "gpuq_other";
    EXPECT_EQ(extend({"7", "10m"}).status, 0) << "the limit of another queue";
    jobs.back().reason = "AssocGrpGRES";
    jobs.back().account = "lab";
    EXPECT_THAT(extend({"7", "1h"}).err, HasSubstr("job 9 does"));
    jobs.back().account = "physics";
    EXPECT_EQ(extend({"7", "10m"}).status, 0);
}

TEST_F(ExtendByRule, NotBeyondTheGpuHoursAhead)
{
    std::string policy = k_policy;
    const std::string condition = ", if: nobody_waits}";
    policy.replace(policy.find(condition), condition.size(),
                   "}, limits: {user: {gpu_hours_ahead: 6}, account: {gpu_hours_ahead: 10}, "
                   "all: {gpu_hours_ahead: 20}}");
    in_force(policy);
    auto& jobs = m_services.slurm.jobs;
    jobs.front().gpus = 2;
    jobs.front().account = "lab";
    jobs.front().ends_at = m_services.time.now() + 1h;
    const auto with = [&](std::uint32_t uid, const std::string& account, int gpus) {
        Job other = jobs.front();
        other.id = JobId{10};
        other.uid = uid;
        other.account = account;
        other.gpus = gpus;
        jobs.resize(1);
        jobs.front().walltime = 2h;
        jobs.push_back(other);
        return extend({"7", "1h"});
    };
    EXPECT_EQ(with(4000, "lab", 2).status, 0) << "2 h of 2 GPUs and 1 h of 2";
    EXPECT_THAT(with(4000, "lab", 3).err, HasSubstr("gives a user 6 GPU-hours ahead "
                                                    "(applied.yaml:5): with this extension they "
                                                    "would be 7"));
    EXPECT_EQ(limit(), 120min);
    EXPECT_THAT(with(4001, "lab", 7).err, HasSubstr("gives an account 10 GPU-hours ahead"));
    EXPECT_THAT(with(4001, "physics", 17).err, HasSubstr("gives all users together 20"));
    EXPECT_EQ(with(4001, "physics", 16).status, 0);
    m_services.slurm.hides_others = true;
    EXPECT_THAT(with(4001, "physics", 16).err, HasSubstr("PrivateData"));
}

TEST_F(ExtendByRule, AsOftenAsTheRuleGives)
{
    EXPECT_EQ(extend({"7", "1h"}).err, "gpuq: job 7 has 3 h, was 2 h\n");
    EXPECT_EQ(extend({"7", "30m"}).status, 0);
    const Use third = extend({"7", "1h"});
    EXPECT_EQ(third.status, 121);
    EXPECT_THAT(third.err, HasSubstr("to at most 4 h, by 2 h more than its time (applied.yaml:5)"));
    EXPECT_EQ(limit(), 210min);
    EXPECT_EQ(extend({"7", "30m"}).status, 0);
}

TEST_F(ExtendByRule, RefusesWhatTheRuleDoesNotGive)
{
    EXPECT_THAT(extend({"7", "2h"}).err, HasSubstr("at most 1 h at a time (applied.yaml:5)"));
    EXPECT_THAT(extend({"train", "1h"}).err, HasSubstr("'train' is not a job number"));
    m_services.slurm.jobs.front().uid = 4001;
    EXPECT_THAT(extend({"7", "1h"}).err, HasSubstr("job 7 is not yours"));
    m_services.slurm.jobs.front().uid = 4000;
    m_services.slurm.jobs.front().qos = "gpuq_other";
    EXPECT_THAT(extend({"7", "1h"}).err, HasSubstr("queue other does not extend running jobs"));
    m_services.slurm.jobs.front().state = JobState::pending;
    EXPECT_THAT(extend({"7", "1h"}).err, HasSubstr("does not run"));
    EXPECT_EQ(limit(), 120min);
}

TEST_F(ExtendByRule, OnlyWhileNoOtherUserWaitsForTheNodes)
{
    auto& jobs = m_services.slurm.jobs;
    jobs.push_back(waiting(4001, "other", "Resources"));
    EXPECT_THAT(extend({"7", "1h"}).err, HasSubstr("no other user waits for its nodes "
                                                   "(applied.yaml:5): job 9 does"));
    for (const Job& harmless :
         {waiting(4000, "gpu", "Resources"), waiting(4001, "elsewhere", "Resources"),
          waiting(4001, "gpu", "Dependency"), waiting(4001, "gpu", "QOSMaxGRESPerUser")}) {
        jobs.resize(1);
        jobs.push_back(harmless);
        EXPECT_EQ(extend({"7", "10m"}).status, 0) << harmless.reason;
    }
}

TEST_F(ExtendByRule, OnlyIfItsOwnerHasSeenACheckpoint)
{
    std::string policy = k_policy;
    policy.replace(policy.find("nobody_waits"), 12, "save_known");
    in_force(policy + "help_desk: {users: cyd, may: extend}\n");
    m_services.slurm.hides_others = true; // not asked
    EXPECT_THAT(extend({"7", "1h"}).err,
                HasSubstr("only after its program has saved a checkpoint (applied.yaml:5)"));
    m_services.variables = {{"SUDO_UID", "4002"}, {"SUDO_USER", "cyd"}};
    EXPECT_THAT(extend({"--saved", "7", "1h"}).err, HasSubstr("no checkpoint of this one is known"))
        << "the help desk can't see it";
    EXPECT_EQ(limit(), 120min);
    m_services.variables = {{"SUDO_UID", "4000"}, {"SUDO_USER", "ada"}};
    EXPECT_EQ(extend({"--saved", "7", "1h"}).status, 0);
    EXPECT_THAT(extend({"--saved", "7", "2h"}).err, HasSubstr("at most 1 h at a time"));
}

TEST_F(ExtendByRule, OfTwoConditionsOneIsEnough)
{
    std::string policy = k_policy;
    policy.replace(policy.find("nobody_waits"), 12, "nobody_waits | save_known");
    in_force(policy);
    m_services.slurm.jobs.push_back(waiting(4001, "other", "Resources"));
    EXPECT_THAT(extend({"7", "1h"}).err, HasSubstr("job 9 does, and no checkpoint"));
    EXPECT_EQ(extend({"--saved", "7", "1h"}).status, 0);
    m_services.slurm.jobs.pop_back();
    EXPECT_EQ(extend({"7", "10m"}).status, 0);
}

TEST_F(ExtendByRule, HiddenJobsAreNotNoJobs)
{
    m_services.slurm.hides_others = true;
    EXPECT_THAT(extend({"7", "1h"}).err, HasSubstr("PrivateData"));
    EXPECT_EQ(limit(), 120min);
}

TEST_F(ExtendByRule, NotIntoAReservation)
{
    m_services.slurm.kept = {reserved("c[1-2]", 90min)};
    EXPECT_THAT(extend({"7", "1h"}).err, HasSubstr("its nodes are reserved from "));
    EXPECT_EQ(limit(), 120min);
    EXPECT_EQ(extend({"7", "20m"}).status, 0) << "which ends before";
    m_services.slurm.kept = {reserved("c3", 10min)};
    EXPECT_EQ(extend({"7", "20m"}).status, 0) << "of other nodes";
}

} // namespace
} // namespace gpuq::cli
