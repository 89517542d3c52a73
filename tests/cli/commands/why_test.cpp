// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class WhyVerb : public testing::Test {
protected:
    FakeServices m_services;

    WhyVerb()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
        m_services.slurm.queues = {Partition{"gpu", 2h, {}, true, true, false, ""},
                                   Partition{"long", 48h, {}, false, true, false, ""}};
        Node node;
        node.name = "n0";
        node.gpus = {NodeGpus{"k80", 4, 1}};
        node.partitions = {"long"};
        node.cpus = 16;
        m_services.slurm.machines = {node};
    }

    Time now() { return m_services.time.now(); }

    RunOnDisk run(const std::string& name)
    {
        return RunOnDisk(m_services.memory, fakes::some_run(now() - 15min, name));
    }

    Job& pending(std::uint32_t id, std::uint32_t priority, const std::string& reason)
    {
        Job job;
        job.id = JobId{id};
        job.partition = "gpu";
        job.state = JobState::pending;
        job.reason = reason;
        job.priority = priority;
        job.batch = true;
        m_services.slurm.jobs.push_back(job);
        return m_services.slurm.jobs.back();
    }

    Use why(const std::vector<std::string>& arguments, const Globals& globals = {})
    {
        return use(k_why_verb, m_services, arguments, globals);
    }
};

TEST_F(WhyVerb, NamesCoresThatAreLackingBesideFreeGpus)
{
    m_services.slurm.machines.front().partitions = {"gpu"};
    run("train").submitted(JobId{8});
    Job& mine = pending(8, 100, "Resources");
    mine.size.gpus = {{"", 1}};
    mine.size.cpus = 2;
    Job other;
    other.id = JobId{5};
    other.state = JobState::running;
    other.partition = "gpu";
    other.nodes = "n0";
    other.ends_at = now() + 1h;
    other.size.cpus = m_services.slurm.machines.front().cpus - 1;
    m_services.slurm.jobs.push_back(other);
    EXPECT_THAT(why({"train"}).out,
                HasSubstr("waits: a GPU is free, but not enough cores (Resources)\n"));
    m_services.slurm.jobs.back().held.whole = {HeldGpus{"n0", "k80", 4}};
    EXPECT_THAT(why({"train"}).out, HasSubstr("waits: no GPU is free (Resources)\n"));
}

TEST_F(WhyVerb, TellsReasonPositionStartAndWhatHelps)
{
    run("train").submitted(JobId{8});
    pending(7, 200, "Resources");
    pending(8, 100, "Priority").started_at = now() + 25min;
    const Use outcome = why({"train"});
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ("\n" + outcome.out, R"(
run 8 (train) waits: others are before you (Priority)
position: 2 in queue gpu; 1 job is ahead
expected start: 08:25 (in 25 min), by Slurm's backfill plan, or sooner
forecast: not known: the nodes that are up in its queue lack the resources it asks for
suggestions:
  gpuq run -p long ...  3 k80 free in it now
  gpuq run -t TIME ...  a shorter run may fit in before the jobs ahead of it
)");
    EXPECT_THAT(m_services.slurm.requests,
                ElementsAre("own_jobs", "all_jobs", "inventory", "reservations"));
}

TEST_F(WhyVerb, SaysWhatIsNotKnown)
{
    run("train").submitted(JobId{8});
    pending(8, 100, "SomethingNew");
    m_services.slurm.hides_others = true;
    EXPECT_EQ("\n" + why({"8"}).out, R"(
run 8 (train) waits: SomethingNew
position: not known in queue gpu
expected start: not known; Slurm has made no plan for it yet, and the jobs of other users are hidden here
)");
}

/// As in the live trials: first in the queue, behind running jobs with known ends.
TEST_F(WhyVerb, TellsByWhenItStartsWhereSlurmHasNoPlan)
{
    run("train").submitted(JobId{8});
    pending(8, 100, "Resources").partition = "long";
    m_services.slurm.jobs.back().size.gpus = {{"k80", 2}};
    for (std::uint32_t id = 1; id < 3; ++id) {
        Job& other = pending(id, 0, "");
        other.state = JobState::running;
        other.partition = "long";
        other.nodes = "n0";
        other.gpus = 2;
        other.ends_at = now() + id * 10min;
    }
    EXPECT_THAT(
        why({"8"}).out,
        HasSubstr("expected start: by 08:10 (in 10 min) at the latest, when job 1 reaches its "
                  "time limit; later only if other jobs are put before it\n"));
    EXPECT_THAT(why({"8"}).out,
                testing::ContainsRegex("forecast: it starts by 08:0.* with a probability of 50 %, "
                                       "by 08:.* with 90 %\n"));
    Globals globals;
    globals.json = true;
    const std::string document = why({"8"}, globals).out;
    EXPECT_THAT(document, HasSubstr(R"("expected_start_basis": "limits")"));
    EXPECT_THAT(document, HasSubstr(R"("start_p50": "2027-01-15T08:0)"));
    EXPECT_THAT(document, HasSubstr(R"("start_unknown": null)"));
    m_services.slurm.find(JobId{1})->ends_at.reset();
    m_services.slurm.find(JobId{2})->ends_at.reset();
    EXPECT_THAT(why({"8"}).out, HasSubstr("no plan for it yet, and job 1 has no time limit\n"));
}

TEST_F(WhyVerb, ExplainsTheWaitOfAPlainJob)
{
    pending(20, 100, "Resources").name = "hand";
    const std::string outcome = why({"20"}).out;
    EXPECT_THAT(outcome, HasSubstr("job 20 (hand) waits: "));
    EXPECT_THAT(outcome, HasSubstr("position: 1 in queue gpu; no job is ahead"));
    EXPECT_EQ(why({"hand"}).out, outcome);
    EXPECT_EQ(why({"21"}).status, 2);
}

TEST_F(WhyVerb, SaysThatARunDoesNotWait)
{
    RunOnDisk train = run("train").submitted(JobId{8}).started(JobId{8}, now() - 5min);
    train.beat(JobId{8}, now());
    EXPECT_EQ(why({"last"}).out,
              "run 8 (train) does not wait: it is running, since 07:55, until 09:55 at the latest\n"
              "its output: gpuq logs -f 8\n");
    EXPECT_THAT(m_services.slurm.requests, IsEmpty());
    train.ended({1, Cause::finished, "", now()});
    EXPECT_EQ(why({"8"}).out, "run 8 (train) does not wait: it has ended; it ended with status 1\n"
                              "everything about it: gpuq show 8\n");
}

TEST_F(WhyVerb, SaysThatSlurmIsSilent)
{
    run("train").submitted(JobId{8});
    m_services.slurm.silent = true;
    const Use outcome = why({"train"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, ""); // reported once, as part of the state
    EXPECT_EQ(outcome.out, "run 8 (train): state unknown: Slurm does not answer\n");
}

TEST_F(WhyVerb, ShowsHostileNamesHarmlessly)
{
    run("evil\x1b[2J").submitted(JobId{8});
    pending(8, 1, "Bad\x1b[2JReason");
    EXPECT_THAT(why({"8"}).out, Not(HasSubstr("\x1b")));
}

TEST_F(WhyVerb, NeedsOneRun)
{
    EXPECT_EQ(why({}).status, 2);
    EXPECT_EQ(why({"nothing"}).status, 2);
}

TEST_F(WhyVerb, WritesItsDocument)
{
    run("train").submitted(JobId{8});
    pending(8, 100, "Priority").started_at = now() + 25min;
    Globals globals;
    globals.json = true;
    const std::string document = why({"8"}, globals).out;
    for (const char* part :
         {R"("schema": 1)", R"("waits": true)", R"("reason": "Priority")",
          R"("reason_text": "others are before you")", R"("ahead": 0)", R"("position": 1)",
          R"("expected_start": "2027-01-15T08:25:00.000000Z")",
          R"("expected_start_basis": "backfill")", R"("code": "other_queue")",
          R"("command": "gpuq run -p long ...")", R"("warnings": [])"}) {
        EXPECT_THAT(document, HasSubstr(part));
    }
}

} // namespace
} // namespace gpuq::cli
