// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "core/layout.h"
#include "core/split_arguments.h"
#include "runs/credentials.h"
#include "runs/evidence.h"
#include "runs/notebook.h"
#include "runs/repeat.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Arguments = std::vector<std::string>;

class Again : public testing::Test {
protected:
    Again()
    {
        std::ofstream(m_dir / "train.py") << "pass\n";
        m_services.slurm.queues = {{.name = "gpu", .max_time = 48h, .is_default = true}};
        m_recorded = fakes::some_run(m_services.time.now() - 1h, "train");
        m_recorded.request.program = {"python3", "train.py", "--lr", "1"};
        m_recorded.request.work_dir = m_dir;
        m_recorded.request.setup.env = {{"HF_TOKEN", "hidden-1"}, {"LR", "2"}};
    }

    ~Again() override
    {
        std::filesystem::current_path(m_before);
        std::filesystem::remove_all(m_dir);
    }

    /// A run that has ended, in job 7.
    void record()
    {
        fakes::RunOnDisk(m_services.memory, m_recorded)
            .submitted(JobId{7})
            .ended({3, Cause::finished, "", m_services.time.now()});
    }

    Use again(const Arguments& arguments, Globals globals = {})
    {
        return use(k_again_verb, m_services, arguments, std::move(globals));
    }

    /// The run that the command has started, detached.
    gpuq::Run started(Arguments arguments)
    {
        arguments.insert(arguments.begin(), "--detach");
        const Use done = again(arguments);
        EXPECT_EQ(done.status, 0) << done.err;
        const auto keys = all_runs(m_services.memory);
        EXPECT_EQ(keys->size(), 2U);
        const auto run = read_run(m_services.memory, keys->front());
        EXPECT_TRUE(run);
        return run ? *run : gpuq::Run{m_recorded.key};
    }

    static std::string new_directory()
    {
        std::string name = testing::TempDir() + "gpuq-again-XXXXXX";
        return ::mkdtemp(name.data());
    }

    std::filesystem::path m_before = std::filesystem::current_path();
    std::filesystem::path m_dir = new_directory();
    FakeServices m_services;
    gpuq::Run m_recorded{RunKey::make({}, {})};
};

TEST_F(Again, StartsARunWithTheSameRequest)
{
    m_recorded.request.memory_mib = 512;
    m_recorded.request.gpus = {2, "k80", std::nullopt};
    record();
    gpuq::Run run = started({"7"});
    EXPECT_NE(run.key, m_recorded.key);
    EXPECT_EQ(run.request, m_recorded.request);
}

TEST_F(Again, ReplacesTheArgumentsAndKeepsTheScript)
{
    record();
    EXPECT_THAT(started({"train", "--", "--lr", "1e-3", "--", "", "a b"}).request.program,
                ElementsAre("python3", "train.py", "--lr", "1e-3", "--", "", "a b"));
}

/// Its configuration, with which Jupyter opens no port, ends with the run.
TEST_F(Again, StartsNoNotebook)
{
    record();
    ASSERT_TRUE(write_notebook(m_services.memory, m_recorded.key, {"/a"}, std::string(48, 'a')));
    const Use done = again({"--detach", "7"});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, testing::HasSubstr("it is a notebook: use gpuq notebook"));
    EXPECT_EQ(all_runs(m_services.memory)->size(), 1U);
}

TEST_F(Again, AnEmptyListOfArgumentsIsOne)
{
    record();
    EXPECT_THAT(started({"last", "--"}).request.program, ElementsAre("python3", "train.py"));
}

TEST_F(Again, TakesOptionsBeforeAndAfterTheRun)
{
    record();
    const gpuq::Run run =
        started({"-t", "1h", "train", "-J", "other", "--env", "LR=3", "--", "-t", "9"});
    EXPECT_EQ(run.request.walltime, 1h);
    EXPECT_EQ(run.request.name, "other");
    EXPECT_THAT(run.request.setup.env,
                ElementsAre(testing::Pair("HF_TOKEN", "hidden-1"), testing::Pair("LR", "3")));
    EXPECT_THAT(run.request.program, ElementsAre("python3", "train.py", "-t", "9"));
}

TEST_F(Again, StartsAnEditedLine)
{
    m_recorded.request.program = {"./a b", "", "it's", "\\", "two\nlines", "größe", "--", "-t"};
    record();
    const Arguments edited = *split_arguments(again_text(m_recorded.request));
    Arguments arguments = {"--program", "7", "--"};
    arguments.insert(arguments.end(), edited.begin(), edited.end());
    EXPECT_THAT(again(arguments).err, HasSubstr("./a b: not found")) << "as by gpuq run";
    arguments[3] = "/bin/sh";
    m_recorded.request.program[0] = "/bin/sh";
    EXPECT_EQ(started(arguments).request.program, m_recorded.request.program);
}

TEST_F(Again, ALauncherWithoutAScriptNeedsAllWords)
{
    std::ofstream(m_dir / "train") << "#!/bin/sh\n";
    std::filesystem::permissions(m_dir / "train", std::filesystem::perms::owner_all);
    m_recorded.request.program = {"env", "A=1", "./train", "--lr", "1"};
    record();
    const Use refused = again({"7", "--", "--lr", "2"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("gpuq again --program 7 -- env ..."));
    EXPECT_EQ(started({"7"}).request.program, m_recorded.request.program);
}

TEST_F(Again, TheWorkingDirectoryIsThatOfTheRun)
{
    m_recorded.request.work_dir = m_dir / "no such";
    record();
    const Use refused = again({"7"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("run 7 (train) can't be started again"),
                                   HasSubstr("/no such is gone")));
    EXPECT_TRUE(m_services.slurm.requests.empty());
}

TEST_F(Again, AnotherWorkingDirectoryCanBeGiven)
{
    m_recorded.request.work_dir = m_dir / "no such";
    record();
    std::filesystem::create_directory(m_dir / "other");
    std::ofstream(m_dir / "other/train.py") << "pass\n";
    std::filesystem::current_path(m_dir);
    EXPECT_EQ(started({"-D", "x/../other/", "7"}).request.work_dir, (m_dir / "other").string());
    const Use refused = again({"--chdir", "none", "7"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("-D: " + (m_dir / "other/none").string() + ": not found"));
}

TEST_F(Again, PrintsNoRecordedValue)
{
    record();
    const Use shown = again({"--dry-run", "7", "--env", "LR=5"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, AllOf(HasSubstr("export HF_TOKEN='[removed]'"), HasSubstr("LR=5"),
                                 HasSubstr("python3 train.py --lr 1")));
    const Use document = again({"--dry-run", "7"}, Globals{.json = true});
    const Use detached = again({"--detach", "7"});
    for (const Use& done : {shown, document, detached}) {
        EXPECT_THAT(done.out + done.err, Not(HasSubstr("hidden-1")));
    }
}

TEST_F(Again, RepeatsTheKeytabAndTheRuleForTickets)
{
    record();
    CredentialPlan plan;
    plan.principal = "ann@LAB.ORG";
    plan.directory = "/state/" + m_recorded.key.text();
    plan.keytab = "/nowhere/ann.keytab";
    plan.when_short = WhenShort::fail;
    ASSERT_TRUE(m_services.memory.write(credential_plan_json(m_recorded.key), to_json(plan)));
    EXPECT_THAT(again({"--detach", "7"}).err,
                HasSubstr("--keytab: /nowhere/ann.keytab: not found"));
}

TEST_F(Again, ATerminalIsRepeated)
{
    m_recorded.request.pty = Pty{{}, true};
    m_recorded.request.input = Input::terminal;
    record();
    const gpuq::Run run = started({"7"});
    ASSERT_TRUE(run.request.pty);
    EXPECT_TRUE(run.request.pty->shell);
    EXPECT_THAT(again({"--detach", "-N", "2", "7"}).err, HasSubstr("there is one terminal"));
}

TEST_F(Again, OtherUsesAreRefused)
{
    record();
    EXPECT_THAT(again({}).err, HasSubstr("which run?"));
    EXPECT_THAT(again({"--", "7"}).err, HasSubstr("which run?"));
    EXPECT_THAT(again({"7", "1e-3"}).err, HasSubstr("unexpected argument '1e-3'"));
    EXPECT_THAT(again({"7", "--lr", "1e-3"}).err, HasSubstr("no option --lr"));
    EXPECT_THAT(again({"--program", "7"}).err, HasSubstr("the program is missing"));
    EXPECT_THAT(again({"--program", "7", "--"}).err, HasSubstr("the program is missing"));
    EXPECT_THAT(again({"-t", "x", "7"}).err, HasSubstr("-t: "));
    EXPECT_EQ(again({"nosuch"}).status, 2);
    EXPECT_EQ(all_runs(m_services.memory)->size(), 1U);
}

TEST_F(Again, APlainJobIsNotRepeated)
{
    Job job;
    job.id = JobId{9};
    job.name = "plain";
    job.state = JobState::running;
    m_services.slurm.jobs = {job};
    const Use refused = again({"9"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("is a plain Slurm job, which gpuq again does not support"));
}

} // namespace
} // namespace gpuq::cli
