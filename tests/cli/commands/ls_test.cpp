// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "ports/job.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::HasSubstr;
using testing::Not;

class Ls : public testing::Test {
protected:
    FakeServices m_services;
    unsigned char m_number = 0;

    Ls()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
    }

    Time now() { return m_services.time.now(); }

    RunOnDisk run(const std::string& name, std::chrono::seconds age)
    {
        auto record = fakes::some_run(now() - age, name, ++m_number);
        return RunOnDisk(m_services.memory, record);
    }

    Job& job(const RunKey& key, std::uint32_t id, JobState state)
    {
        Job job;
        job.id = JobId{id};
        job.comment = job_comment(key);
        job.state = state;
        job.batch = true;
        m_services.slurm.jobs.push_back(job);
        return m_services.slurm.jobs.back();
    }

    Use ls(const std::vector<std::string>& arguments = {}, const Globals& globals = {})
    {
        return use(k_ls_verb, m_services, arguments, globals);
    }
};

TEST_F(Ls, ShowsWhatEachRunDoes)
{
    RunOnDisk running = run("train", 15min).submitted(JobId{7});
    running.started(JobId{7}, now() - 12min).beat(JobId{7}, now());
    const RunOnDisk queued = run("eval", 5min).submitted(JobId{8});
    job(queued.key(), 8, JobState::pending).reason = "Priority";
    m_services.slurm.jobs.back().started_at = now() + 1h;
    RunOnDisk done = run("prep", 2h).submitted(JobId{5}).started(JobId{5}, now() - 2h);
    done.ended({0, Cause::finished, "", now() - 90min});
    RunOnDisk failed = run("bad", 3h).submitted(JobId{4}).started(JobId{4}, now() - 3h);
    failed.ended({137, Cause::memory, "", now() - 3h + 45s});
    run("young", 1s);

    const Use shown = ls();
    EXPECT_EQ(shown.status, 0);
    EXPECT_EQ(shown.err, "");
    EXPECT_EQ("\n" + shown.out, R"(
      ID  NAME   STATE                                       QUEUE  GPUS  TIME / LIMIT  EXIT
ab050304  young  submitting                                  gpu       1  - / 2 h          -
       8  eval   waiting: others are before you; from 09:00  gpu       1  - / 2 h          -
       7  train  running                                     gpu       1  12 min / 2 h     -
       5  prep   done                                        gpu       1  30 min / 2 h     0
       4  bad    out of memory                               gpu       1  45 s / 2 h     137
)");
}

TEST_F(Ls, ListsActiveRunsAndThoseThatEndedWithinADay)
{
    run("active-for-long", 240h).submitted(JobId{1}).started(JobId{1}, now());
    run("long-and-just-ended", 48h).ended({0, Cause::finished, "", now() - 1h});
    run("ended-yesterday", 30h).ended({0, Cause::finished, "", now() - 25h});
    const std::vector<std::string> active = m_services.memory.list("index/active").value();
    for (const std::string& path : active) {
        if (path != RunKey::make(now() - 240h, {0xab, 1, 3, 4, 5, 6, 7, 8}).text()) {
            ASSERT_TRUE(m_services.memory.remove("index/active/" + path));
        }
    }
    const std::string recent = ls().out;
    EXPECT_THAT(recent, HasSubstr("active-for-long"));
    EXPECT_THAT(recent, HasSubstr("long-and-just-ended"));
    EXPECT_THAT(recent, Not(HasSubstr("ended-yesterday")));
    EXPECT_THAT(ls({"--all"}).out, HasSubstr("ended-yesterday"));
}

/// The runs are read from disk; the one request is for the plain jobs.
TEST_F(Ls, AsksOnceForPlainJobsAndNotAllTheTime)
{
    run("train", 15min).submitted(JobId{7}).started(JobId{7}, now());
    run("old", 15min).ended({0, Cause::finished, "", now()});
    ls();
    EXPECT_THAT(m_services.slurm.requests, testing::ElementsAre("own_jobs"));
    for (int i = 0; i < 30; ++i) {
        ls();
    }
    EXPECT_EQ(m_services.slurm.requests.size(), 10U);
    m_services.time.advance(4s);
    EXPECT_EQ(ls().err, "gpuq: plain Slurm jobs as they were 4 s ago\n");
}

TEST_F(Ls, MarksPlainJobsAndShowsNoJobOfARunTwice)
{
    const RunOnDisk queued = run("eval", 5min).submitted(JobId{8});
    job(queued.key(), 8, JobState::pending).reason = "Priority";
    Job plain;
    plain.id = JobId{9};
    plain.name = "evil\x1b[2J";
    plain.partition = "gpu";
    plain.state = JobState::running;
    plain.submitted_at = now() - 1min;
    plain.started_at = now() - 30s;
    plain.nodes = "n0";
    plain.walltime = 20min;
    plain.gpus = 2;
    m_services.slurm.jobs.push_back(plain);
    plain.id = JobId{10};
    plain.called = "10_[3-6]";
    plain.name = "sweep";
    plain.state = JobState::pending;
    plain.reason = "Resources";
    plain.comment = job_comment(fakes::some_run(now(), "nobody's").key);
    m_services.slurm.jobs.push_back(plain);
    const Use shown = ls();
    EXPECT_EQ(shown.err, "");
    EXPECT_EQ("\n" + shown.out, R"(
      ID  NAME       STATE                           QUEUE  GPUS  TIME / LIMIT   EXIT  KIND
10_[3-6]  sweep      waiting: too few GPUs are free  gpu       2  - / 20 min        -  plain
       9  evil^[[2J  running                         gpu       2  30 s / 20 min     -  plain
       8  eval       waiting: others are before you  gpu       1  - / 2 h           -  run
)");
    Globals json;
    json.json = true;
    const std::string document = ls({}, json).out;
    EXPECT_THAT(document, HasSubstr(R"("kind": "plain")"));
    EXPECT_THAT(document, HasSubstr(R"("called": "10_[3-6]")"));
    EXPECT_THAT(document, HasSubstr(R"("kind": "run")"));
}

TEST_F(Ls, SaysThatPlainJobsAreNotKnown)
{
    RunOnDisk running = run("train", 15min).submitted(JobId{7});
    running.started(JobId{7}, now() - 12min).beat(JobId{7}, now());
    m_services.slurm.silent = true;
    const Use shown = ls();
    EXPECT_EQ(shown.status, 0);
    EXPECT_EQ(shown.err, "gpuq: plain Slurm jobs unknown: Slurm does not answer\n");
    EXPECT_THAT(shown.out, HasSubstr("running"));
}

TEST_F(Ls, AsksOnceHoweverManyRunsWait)
{
    for (int i = 1; i <= 20; ++i) {
        job(run("wait", 5min).submitted(JobId{unsigned(i)}).key(), unsigned(i), JobState::pending);
    }
    ls();
    EXPECT_THAT(m_services.slurm.requests, testing::ElementsAre("own_jobs"));
}

TEST_F(Ls, ShowsWhatTheDiskKnowsWhenSlurmIsSilent)
{
    run("train", 15min).submitted(JobId{7}).started(JobId{7}, now());
    run("queued", 15min).submitted(JobId{8});
    m_services.slurm.silent = true;
    const Use shown = ls();
    EXPECT_EQ(shown.status, 0);
    EXPECT_EQ(shown.err,
              "gpuq: Slurm does not answer; showing the state on disk, without plain Slurm "
              "jobs\n");
    EXPECT_THAT(shown.out, HasSubstr("running"));
    EXPECT_THAT(shown.out, HasSubstr("unknown"));
}

TEST_F(Ls, ShowsHostileNamesHarmlessly)
{
    run("evil\x1b[2J\n\r", 15min).submitted(JobId{7}).started(JobId{7}, now());
    const std::string shown = ls().out;
    EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
    EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 2);
}

TEST_F(Ls, LeavesOutTheRestOfARefusedRun)
{
    ASSERT_TRUE(m_services.memory.make_dir(layout::inbox(fakes::some_run(now(), "x").key)));
    const Use shown = ls();
    EXPECT_EQ(shown.out, "");
    EXPECT_EQ(shown.err,
              "gpuq: no runs, and none ended within a day; gpuq ls --all lists older ones\n");
    EXPECT_EQ(ls({"--all"}).err, "gpuq: no runs\n");
    Globals quiet;
    quiet.quiet = true;
    EXPECT_EQ(ls({}, quiet).err, "");
}

TEST_F(Ls, ShowsOnlyTheColumnsAskedFor)
{
    run("train", 15min).submitted(JobId{7}).started(JobId{7}, now());
    Globals globals;
    globals.columns = "name,id";
    globals.no_header = true;
    EXPECT_EQ(ls({}, globals).out, "train  7\n");
    globals.columns = "nmae";
    EXPECT_EQ(ls({}, globals).status, 2);
    EXPECT_THAT(ls({}, globals).err, HasSubstr("name"));
}

TEST_F(Ls, HasMoreColumnsForThoseWhoAsk)
{
    RunOnDisk done = run("prep", 2h).submitted(JobId{5}).started(JobId{5}, now() - 2h);
    done.ended({1, Cause::crashed, "", now() - 90min});
    Globals globals;
    globals.columns = "id,cause,node,submitted,started,ends,cluster,key";
    EXPECT_EQ("\n" + ls({}, globals).out, R"(
ID  CAUSE    NODE   SUBMITTED  STARTED  ENDS   CLUSTER  KEY
 5  crashed  node1  06:00      06:00    06:30  lab      )" +
                                              done.key().text() + "\n");
}

TEST_F(Ls, WritesJsonWithNullForWhatIsNotKnown)
{
    const RunOnDisk queued = run("queued", 15min).submitted(JobId{8});
    m_services.slurm.silent = true;
    Globals globals;
    globals.json = true;
    const Use shown = ls({}, globals);
    EXPECT_EQ(shown.status, 0);
    EXPECT_THAT(shown.out, HasSubstr(R"("schema": 1)"));
    EXPECT_THAT(shown.out, HasSubstr(R"("key": ")" + queued.key().text()));
    EXPECT_THAT(shown.out, HasSubstr(R"("job": 8)"));
    EXPECT_THAT(shown.out, HasSubstr(R"("state": null)"));
    EXPECT_THAT(shown.out, HasSubstr(R"("exit": null)"));
    EXPECT_THAT(shown.out, HasSubstr(R"("time_limit": 7200)"));
    EXPECT_THAT(shown.out, HasSubstr(R"("code": "slurm_unreachable")"));
}

TEST_F(Ls, WritesAnEmptyJsonListWhenThereIsNone)
{
    Globals globals;
    globals.json = true;
    const Use shown = ls({}, globals);
    EXPECT_THAT(shown.out, HasSubstr(R"("runs": [])"));
    EXPECT_EQ(shown.err, "");
}

TEST_F(Ls, RefusesWords)
{
    EXPECT_EQ(ls({"train"}).status, 2);
}

} // namespace
} // namespace gpuq::cli
