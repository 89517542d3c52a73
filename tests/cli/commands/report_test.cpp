// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "core/layout.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> k_planted = {
    "hf_plantedplantedplanted", "planted-by-name",      "planted in two words",
    "plantedRandom1234",        "planted-option-value", "planted-env-value",
    "planted\"quote\\d",        "planted-in-a-url",     "planted-in-the-log"};

class Report : public testing::Test {
protected:
    Report()
    {
        std::string name = fs::temp_directory_path() / "gpuq-report-XXXXXX";
        m_directory = ::mkdtemp(name.data());
        gpuq::Run run = fakes::some_run(m_services.time.now() - 10min, "train", 1);
        run.environment = {"HF_HOME_X=" + k_planted[0],   "MY_PASSWORD=" + k_planted[1],
                           "OTHER_TOKEN=" + k_planted[2], "UNNAMED=" + k_planted[3],
                           "A_SECRET=" + k_planted[6],    "PATH=/usr/bin:/opt/shown"};
        run.request.program = {"python3", "train.py", "--api-key", k_planted[4],
                               "https://ann:" + k_planted[7] + "@host/data"};
        run.request.setup.env = {{"SOME_KEY", k_planted[5]}, {"OMP_NUM_THREADS", "8"}};
        m_run.emplace(m_services.memory, run);
        m_run->submitted(JobId{7});
        std::string all;
        for (const std::string& secret : k_planted) {
            all += "token=" + secret + "\n";
        }
        m_services.memory.append(layout::log(run.key, LinkNumber{1}, Stream::out),
                                 "epoch 1\n" + all + "epoch 2\n");
        m_services.memory.append(layout::log(run.key, LinkNumber{1}, Stream::err),
                                 "warned about " + k_planted[1] + " and " + k_planted[2] + "\n");
        Event ended;
        ended.kind = Event::Kind::ended;
        ended.at = m_services.time.now();
        ended.status = 1;
        ended.cause = Cause::finished;
        ended.detail = "said " + k_planted[6];
        ended.tail = "last words: " + k_planted[2] + "\n" + all;
        m_run->event(ended);
    }
    ~Report() override { fs::remove_all(m_directory); }

    std::string file() const { return m_directory + "/report.tar"; }

    Use report(std::vector<std::string> arguments = {"train"})
    {
        arguments.insert(arguments.begin(), {"-o", file()});
        return use(k_report_verb, m_services, arguments);
    }

    std::string written() const
    {
        std::ifstream stream(file(), std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    FakeServices m_services;
    std::optional<RunOnDisk> m_run;
    std::string m_directory;
};

TEST_F(Report, HasWhatAHelperNeeds)
{
    const Use result = report();
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("wrote " + file()));
    const std::string bundle = written();
    for (const char* name : {"README.txt", "run.json", "state.json", "slurm.json", "doctor.json",
                             "link-1/journal.jsonl", "link-1/out.log", "link-1/err.log"}) {
        EXPECT_THAT(bundle, HasSubstr(std::string("gpuq-report-7/") + name));
    }
    EXPECT_THAT(bundle, AllOf(HasSubstr("PATH=/usr/bin:/opt/shown"), HasSubstr("epoch 2"),
                              HasSubstr("MY_PASSWORD=[removed]"), HasSubstr("train.py"),
                              HasSubstr(m_run->key().text())));
    struct stat status = {};
    ASSERT_EQ(::stat(file().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(Report, HasNoneOfThePlantedSecrets)
{
    ASSERT_EQ(report().status, 0);
    const std::string bundle = written();
    for (const std::string& secret : k_planted) {
        EXPECT_THAT(bundle, Not(HasSubstr(secret)));
    }
    EXPECT_THAT(bundle, Not(HasSubstr("planted")));
}

TEST_F(Report, WithoutLogsThereIsNoOutputAnywhere)
{
    ASSERT_EQ(report({"--no-logs", "train"}).status, 0);
    const std::string bundle = written();
    EXPECT_THAT(bundle, Not(HasSubstr("epoch")));
    EXPECT_THAT(bundle, Not(HasSubstr("last words")));
    EXPECT_THAT(bundle, HasSubstr("\"event\":\"ended\""));
}

TEST_F(Report, HasTheLast200LinesOfALog)
{
    std::string lines;
    for (int i = 1; i <= 300; ++i) {
        lines += "line " + std::to_string(i) + ".\n";
    }
    m_services.memory.append(layout::log(m_run->key(), LinkNumber{1}, Stream::out), lines);
    ASSERT_EQ(report().status, 0);
    const std::string bundle = written();
    EXPECT_THAT(bundle, AllOf(HasSubstr("line 101.\n"), HasSubstr("line 300.\n")));
    EXPECT_THAT(bundle, Not(HasSubstr("line 100.\n")));
}

TEST_F(Report, HalfALineOfALongLogIsLeftOut)
{
    m_services.memory.append(layout::log(m_run->key(), LinkNumber{1}, Stream::out),
                             std::string(400'000, 'a') + "cut" + std::string(600'000, 'b') +
                                 "\nwhole line\n");
    ASSERT_EQ(report().status, 0);
    EXPECT_THAT(written(), HasSubstr("whole line\n"));
    EXPECT_THAT(written(), Not(HasSubstr("bbbb")));
}

TEST_F(Report, NeverWritesOverAFileOrThroughALink)
{
    std::ofstream(file()) << "mine";
    EXPECT_EQ(report().status, 2);
    EXPECT_EQ(written(), "mine");
    fs::remove(file());
    fs::create_symlink(m_directory + "/other", file());
    EXPECT_NE(report().status, 0);
    EXPECT_FALSE(fs::exists(m_directory + "/other"));
}

TEST_F(Report, GoesWithoutSlurm)
{
    m_services.slurm.silent = true;
    m_services.past.silent = true;
    EXPECT_EQ(report().status, 0);
    EXPECT_THAT(written(), HasSubstr("Slurm does not answer"));
}

TEST_F(Report, WantsOneRun)
{
    EXPECT_EQ(report({}).status, 2);
    EXPECT_EQ(report({"train", "train"}).status, 2);
    EXPECT_EQ(report({"nothing-like-it"}).status, 2);
}

} // namespace
} // namespace gpuq::cli
