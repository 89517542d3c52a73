// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/policy_ops/policy_text.h"
#include "lua/submit_script.h"
#include "policy/lua.h"
#include "policy/read.h"
#include "ports/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace gpuq::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using Strings = std::vector<std::string>;

const std::string k_lab_policy =
    "version: 1\n"
    "pools:\n"
    "  all: {nodes: 'n[1-2]', gpus: 'k80:4'}\n"
    "queues:\n"
    "  short: {time: 2h, pools: all, limits: {user: {soft_gpus: 2}}}\n"
    "  long: {time: 48h, pools: all, allow: {accounts: lab, ask: Ada}}\n"
    "tests:\n"
    "  - {job: {gpus: 1, time: 2h}, expect: {queue: short}}\n"
    "  - {job: {gpus: 1, time: 3h}, expect: {refused: ask Ada}}\n"
    "  - {job: {account: lab, gpus: 1, time: 3h}, expect: {queue: long}}\n"
    "  - {job: {account: lab, gpus: 1, time: 49h}, expect: {refused: at "
    "most 2 days}}\n";

/// Uses a real Lua interpreter, which needs no outside resources.
class ServicesWithLua : public FakeServices {
public:
    Result<std::unique_ptr<SubmitScript>> submit_script(const std::string& text) override
    {
        return lua::load_submit_script(text);
    }
};

class PolicyVerb : public testing::Test {
protected:
    ServicesWithLua m_services;

    PolicyVerb() { m_services.files["p.yaml"] = {k_lab_policy, 1000, 0644}; }

    Use policy(const Strings& arguments) { return use(k_policy_verb, m_services, arguments); }
    void write(const std::string& text) { m_services.files["p.yaml"].text = text; }
};

TEST_F(PolicyVerb, ChecksAFile)
{
    const Use fine = policy({"check", "p.yaml"});
    EXPECT_EQ(fine.status, 0);
    EXPECT_THAT(fine.out, HasSubstr("warning: "));
    EXPECT_THAT(fine.out, HasSubstr("JobSubmitPlugins needs lua too (it is now: not set)"));
    EXPECT_EQ(policy({"check", "p.yaml", "--slurm", "22.05"}).out,
              "p.yaml: can be used, 0 errors, 0 warnings\n");
    write(k_lab_policy + "quues: {}\n");
    const Use wrong = policy({"check", "p.yaml"});
    EXPECT_EQ(wrong.status, 1);
    EXPECT_THAT(wrong.out, HasSubstr("p.yaml:12:1: error: unknown name 'quues' (did you mean"));
    EXPECT_THAT(wrong.out, HasSubstr("can not be used, 1 error, 0 warnings"));
    write("version: [\n");
    EXPECT_EQ(policy({"check", "p.yaml"}).status, 2);
}

TEST_F(PolicyVerb, JudgesForTheSlurmThatAnswersOrIsNamed)
{
    std::string text = k_lab_policy;
    text.replace(text.find("soft_gpus: 2"), 12, "gpu_hours_ahead: 8");
    write(text);
    EXPECT_THAT(policy({"check", "p.yaml"}).out, HasSubstr("Slurm 22.05 stores gpu_hours_ahead"));
    EXPECT_THAT(policy({"check", "p.yaml", "--slurm", "24.05"}).out, Not(HasSubstr("stores")));
    EXPECT_EQ(policy({"check", "p.yaml", "--slurm", "new"}).status, 2);
}

TEST_F(PolicyVerb, TheInstalledOneBelongsToRootAlone)
{
    EXPECT_THAT(policy({"check"}).err, HasSubstr("/etc/gpuq/policy.yaml: not found"));
    m_services.files["/etc/gpuq/policy.yaml"] = {k_lab_policy, 0, 0644};
    EXPECT_EQ(policy({"check"}).status, 0);
    m_services.files["/etc/gpuq/policy.yaml"].mode = 0664;
    EXPECT_THAT(policy({"check"}).err,
                HasSubstr("is writable by users other than root (mode 0664)"));
    m_services.files["/etc/gpuq/policy.yaml"] = {k_lab_policy, 1000, 0644};
    EXPECT_THAT(policy({"check"}).err, HasSubstr("belongs to user 1000, not to root"));
    m_services.variables["GPUQ_POLICY"] = "p.yaml";
    EXPECT_EQ(policy({"check"}).status, 0);
}

TEST_F(PolicyVerb, OneThatOthersMayWriteIsReadAndNotObeyed)
{
    m_services.files["p.yaml"].distrust = Error{Error::Kind::denied, "others may write to p.yaml"};
    EXPECT_EQ(policy({"check", "p.yaml"}).status, 0); // named explicitly, and has no effect
    EXPECT_THAT(policy({"plan", "p.yaml"}).err, HasSubstr("others may write to p.yaml"));
    EXPECT_THAT(policy({"apply", "p.yaml"}).err, HasSubstr("others may write to p.yaml"));
    m_services.variables["GPUQ_POLICY"] = "p.yaml";
    EXPECT_THAT(policy({"check"}).err, HasSubstr("others may write to p.yaml"));
}

TEST_F(PolicyVerb, ExplainsWhatARequestMeets)
{
    const Use done =
        policy({"explain", "--policy", "p.yaml", "--user", "bob", "-t", "2h", "-g", "k80:2"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ("\n" + done.out, R"(
queue:         short (p.yaml:5)
pools:         all (p.yaml:5)
a job:         at most 2 h (p.yaml:5)
a user:        2 GPUs while others wait, more otherwise (p.yaml:5)
)");
}

TEST_F(PolicyVerb, ExplainsTheExtensionOfRunningJobs)
{
    std::string text = k_lab_policy;
    text.replace(text.find("limits: "), 0,
                 "extend: {by: 1h, times: 2, if: nobody_waits | save_known}, ");
    write(text + "helper: ops\n");
    EXPECT_THAT(
        policy({"explain", "--policy", "p.yaml", "--user", "bob", "-t", "2h", "-g", "1"}).out,
        HasSubstr("gpuq extend:   at most 1 h at a time, to 4 h in all, while no other user "
                  "waits for its nodes or after its program has saved a checkpoint "
                  "(p.yaml:5)\n"));
}

TEST_F(PolicyVerb, AnAccountInAnyCaseIsTheSame)
{
    for (const char* const account : {"lab", "LAB", "Lab"}) {
        const Use done =
            policy({"explain", "--policy", "p.yaml", "-A", account, "-t", "3h", "-g", "8G+"});
        EXPECT_EQ(done.status, 0) << account << ": " << done.err;
        EXPECT_THAT(done.out, HasSubstr("queue:         long")) << account;
    }
}

TEST_F(PolicyVerb, ExplainsTheValuesOfAnotherHour)
{
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    write("version: 1\npools:\n  all: {nodes: n1, gpus: 'k80:4'}\nqueues:\n  short:\n    time: 2h\n"
          "    pools: all\n    calendar:\n      - when: {from: '20:00', to: '08:00'}\n"
          "        time: 8h\n");
    const auto explain = [&](const std::string& at) {
        return policy({"explain", "--policy", "p.yaml", "-t", "5h", "--at", at});
    };
    EXPECT_EQ(explain("21:00").status, 0) << explain("21:00").err;
    EXPECT_THAT(explain("21:00").out, HasSubstr("a job:         at most 8 h (p.yaml:10)"));
    EXPECT_EQ(explain("12:00").status, 121);
    EXPECT_EQ(explain("2027-02-31T21:00").status, 2) << "no such day";
    EXPECT_EQ(explain("noon").status, 2);
    EXPECT_THAT(explain("noon").err, HasSubstr("'noon' is not a start"));
}

TEST_F(PolicyVerb, ExplainsCoresAndMemory)
{
    write("version: 1\ngpus: {k80: {memory: 12G}, big: {memory: 20G}}\npools:\n"
          "  all: {nodes: n1, gpus: 'k80:4'}\n  more: {nodes: n2, gpus: 'big:4'}\nqueues:\n"
          "  short: {time: 2h, pools: [all, more], per_gpu: {cpus: 4, memory: 8G}}\n");
    const auto explain = [&](Strings arguments) {
        arguments.insert(arguments.begin(), {"explain", "--policy", "p.yaml", "-t", "1h"});
        return policy(arguments).out;
    };
    EXPECT_THAT(explain({}), HasSubstr("each GPU:      4 CPUs and 8 GiB, and no more (p.yaml:7)"));
    EXPECT_THAT(explain({"-c", "5"}),
                HasSubstr("suggestion: without -c and --mem: queue short takes it"));
    EXPECT_THAT(explain({"-g", "2", "-c", "8", "--mem", "16G"}), HasSubstr("queue:         short"));
    EXPECT_THAT(explain({"-g", "2", "--mem", "17G"}), HasSubstr("gives 4 CPUs and 8 GiB"));
    EXPECT_THAT(explain({"-g", "16G+"}), HasSubstr("pools:         more"));
    EXPECT_EQ(policy({"explain", "--policy", "p.yaml", "-g", "40G+"}).status, 121);
    EXPECT_EQ(policy({"explain", "--policy", "p.yaml", "-c", "x"}).status, 2);
}

TEST_F(PolicyVerb, ExplainsNoQueueThatThereIsNot)
{
    const Use lost = policy({"explain", "--policy", "p.yaml", "-p", "lon"});
    EXPECT_NE(lost.status, 0);
    EXPECT_THAT(lost.err, HasSubstr("no queue 'lon' (did you mean 'long'?)"));
}

TEST_F(PolicyVerb, ARefusalSaysWhatWouldHelp)
{
    const Use done = policy({"explain", "--policy", "p.yaml", "--user", "bob", "-t", "5h"});
    EXPECT_EQ(done.status, 121);
    EXPECT_EQ("\n" + done.out, R"(
refused
- no queue takes this job (p.yaml)
- queue short takes at most 2 h a job (p.yaml:5)
- queue long is for accounts lab only; ask Ada (p.yaml:6)
- suggestion: -t 2h: queue short takes it
)");
    EXPECT_THAT(policy({"explain", "--policy", "p.yaml", "-g", "6"}).out,
                HasSubstr("suggestion: -g 4: queue short takes it"));
    EXPECT_THAT(policy({"explain", "--policy", "p.yaml", "-g", "a100"}).out,
                HasSubstr("any model instead of a100: queue short takes it"));
}

TEST_F(PolicyVerb, CountsTheGpusOneHas)
{
    Job job;
    job.id = JobId{7};
    job.partition = "short-more";
    job.state = JobState::running;
    job.gpus = 3;
    m_services.slurm.jobs.push_back(job);
    EXPECT_THAT(policy({"explain", "--policy", "p.yaml", "-t", "1h"}).out,
                HasSubstr("you have:      3 GPUs in this queue now"));
}

TEST_F(PolicyVerb, TriesTheFilesOwnTests)
{
    const Use done = policy({"test", "p.yaml"});
    EXPECT_EQ(done.status, 0) << done.out;
    EXPECT_THAT(done.out, HasSubstr("4 of 4 tests passed, each by gpuq and by job_submit.lua; 5 of "
                                    "5 rules have a test\n"));
    write(k_lab_policy + "  - {name: no, job: {gpus: 1, time: 1h}, expect: {queue: long}}\n");
    const Use failed = policy({"test", "p.yaml"});
    EXPECT_EQ(failed.status, 1);
    EXPECT_THAT(failed.out,
                HasSubstr("FAILED  no (p.yaml:12): queue short; expected queue long\n"));
    write(k_lab_policy.substr(0, k_lab_policy.find("  - {job: {account: lab")));
    const Use gap = policy({"test", "p.yaml"});
    EXPECT_EQ(gap.status, 1);
    EXPECT_THAT(gap.out, HasSubstr("no test queue long (p.yaml:6)"));
}

TEST_F(PolicyVerb, AnOptionOfAnotherPartIsNotPassedOver)
{
    const Use plan = use(k_policy_verb, m_services, {"plan", "p.yaml", "--html", "page.html"});
    EXPECT_EQ(plan.status, 2);
    EXPECT_THAT(plan.err, HasSubstr("policy plan takes no --html: that is for policy simulate"));
    EXPECT_THAT(use(k_policy_verb, m_services, {"drift", "--policy", "p.yaml"}).err,
                HasSubstr("policy drift takes no --policy"));
}

TEST_F(PolicyVerb, SaysWhatItTakes)
{
    EXPECT_THAT(policy({}).err, HasSubstr("policy: one of import, check, explain, test"));
    EXPECT_THAT(policy({"chek"}).err, HasSubstr("did you mean 'check'?"));
    EXPECT_EQ(policy({"explain", "p.yaml"}).status, 2);
    EXPECT_EQ(policy({"check", "a", "b"}).status, 2);
}

/// The text between .EX and .EE, without troff escapes.
Strings examples_in(const std::string& page)
{
    Strings examples;
    for (std::size_t at = page.find("\n.EX\n"); at != std::string::npos;
         at = page.find("\n.EX\n", at + 1)) {
        const std::size_t begin = at + 5;
        const std::string text = page.substr(begin, page.find("\n.EE", begin) - begin + 1);
        examples.push_back(std::regex_replace(text, std::regex("\\\\-"), "-"));
    }
    return examples;
}

std::string content_of(const std::string& path)
{
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(PolicyPages, TheirFilesWork)
{
    const Strings examples = examples_in(content_of(GPUQ_MAN_DIR "/gpuq-policy.5"));
    ASSERT_EQ(examples.size(), 2U);
    for (const std::string& example : examples) {
        const auto reading = policy::read_policy(example, "example");
        ASSERT_TRUE(reading) << reading.error().text;
        for (const policy::Finding& finding : reading->findings) {
            ADD_FAILURE() << to_line(finding, "example");
        }
        for (const auto& result : run_cases(policy::Rules(reading->policy)).results) {
            EXPECT_TRUE(result.passed) << result.got;
        }
    }
}

/// The README recommends the example policies, which have their own tests.
TEST(PolicyPages, EveryRuleOfTheExamplesHasATest)
{
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(GPUQ_POLICIES_DIR)) {
        if (entry.path().extension() != ".yaml") {
            continue;
        }
        ServicesWithLua services;
        services.files["p.yaml"] = {content_of(entry.path()), 0, 0644};
        const Use done = use(k_policy_verb, services, {"test", "p.yaml"});
        EXPECT_EQ(done.status, 0) << entry.path() << "\n" << done.out << done.err;
        ++count;
    }
    EXPECT_GE(count, 6);
}

TEST(PolicyPages, TheirCommandsWork)
{
    const Strings examples = examples_in(content_of(GPUQ_MAN_DIR "/gpuq-policy.1"));
    ASSERT_EQ(examples.size(), 1U);
    ServicesWithLua services;
    services.files["policies/criann.yaml"] = {content_of(GPUQ_POLICIES_DIR "/criann.yaml"), 0,
                                              0644};
    std::istringstream lines(examples.front());
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
        std::istringstream stream(line.substr(std::string("gpuq policy ").size()));
        const Strings arguments{std::istream_iterator<std::string>(stream), {}};
        const Use done = use(k_policy_verb, services, arguments);
        EXPECT_EQ(done.status, line.find("49h") != std::string::npos ? 121 : 0)
            << line << "\n"
            << done.out << done.err;
    }
    EXPECT_EQ(count, 5);
}

} // namespace
} // namespace gpuq::cli
