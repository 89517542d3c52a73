// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/simulate.h"

#include "cli/commands/verbs.h"
#include "cli/fake_services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace gpuq::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string k_four_gpus_a_job = "version: 1\n"
                                      "pools:\n"
                                      "  all: {nodes: 'n[1-2]', gpus: 'k80:4'}\n"
                                      "queues:\n"
                                      "  short: {time: 2h, pools: all, limits: {job: {gpus: 4}}}\n";

class PolicySimulate : public testing::Test {
protected:
    FakeServices m_services;
    fs::path m_dir;

    void SetUp() override
    {
        std::string name = fs::temp_directory_path() / "gpuq-simulate-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        m_dir = name;
        m_services.files["p.yaml"] = {k_four_gpus_a_job, 0, 0644};
        std::ofstream(m_dir / "<b>&.csv")
            << "submit_s,duration_s,gpus\n0,3600,8\n60,600,4\n90,60,4\n";
    }
    void TearDown() override { fs::remove_all(m_dir); }

    std::string trace() const { return m_dir / "<b>&.csv"; }
    Use policy(const std::vector<std::string>& arguments, Globals globals = {})
    {
        return use(k_policy_verb, m_services, arguments, std::move(globals));
    }
    static std::string content(const fs::path& path)
    {
        std::ifstream stream(path);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
};

TEST_F(PolicySimulate, ShowsTheSameJobsUnderBothSideBySide)
{
    const Use shown = policy({"simulate", "--trace", trace(), "p.yaml"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("plain queue"));
    EXPECT_THAT(shown.out, testing::ContainsRegex("runs refused +0 +1\n"));
}

TEST_F(PolicySimulate, SaysWhichRuleRefusesAndWhichPromiseBreaks)
{
    m_services.files["p.yaml"].text = "version: 1\npools: {all: {nodes: n1, gpus: 4}}\nqueues:\n"
                                      "  q: {time: 2h, pools: all, wait: {max: 5m},\n"
                                      "      limits: {job: {gpus: 4}}}\n";
    std::ofstream(m_dir / "<b>&.csv") << "submit_s,duration_s,gpus\n0,3600,4\n60,600,4\n90,60,8\n";
    const Use shown = policy({"simulate", "--trace", trace(), "p.yaml"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out,
                HasSubstr("p.yaml: 1 run refused: queue q gives a job at most 4 GPUs (p.yaml:5)\n"
                          "p.yaml:4: queue q: no run should wait longer than 5 min; it would be "));
    Globals json;
    json.json = true;
    EXPECT_THAT(policy({"simulate", "--trace", trace(), "p.yaml"}, json).out,
                HasSubstr("\"why\": \"queue q gives a job at most 4 GPUs (p.yaml:5)\""));
}

TEST_F(PolicySimulate, TellsOfRunsThatWouldNotBeDone)
{
    std::ofstream(m_dir / "<b>&.csv") << "submit_s,duration_s,gpus,limit_s\n0,7200,4,3600\n";
    const Use shown = policy({"simulate", "--trace", trace(), "p.yaml"});
    EXPECT_THAT(shown.out, testing::ContainsRegex("runs stopped at their time limit +0 +1\n"));
    std::ofstream(m_dir / "<b>&.csv") << "submit_s,duration_s,gpus\n0,18000,4\n";
    const Use refused = policy({"simulate", "--trace", trace(), "p.yaml"});
    EXPECT_THAT(refused.out, Not(HasSubstr("stopped at their")));
    EXPECT_THAT(refused.out, testing::ContainsRegex("start within 2 h +- +-\n"));
}

TEST_F(PolicySimulate, AppliesHoursOnTheDatesOfTheTrace)
{
    m_services.files["p.yaml"].text =
        "version: 1\npools: {all: {nodes: n1, gpus: 4, when: {days: mon-fri}}}\nqueues:\n"
        "  q: {time: 2h, pools: all}\n";
    const Use assumed = policy({"simulate", "--trace", trace(), "p.yaml"});
    EXPECT_THAT(assumed.err, HasSubstr("<b>&.csv has no date, and the policy has hours: its first "
                                       "submission is taken as a Monday at 00:00"));
    EXPECT_THAT(assumed.out, testing::ContainsRegex("longest wait +9 min 30 s +9 min 30 s\n"));
    const Use saturday =
        policy({"simulate", "--trace", trace(), "--begins", "2026-11-07T12:00", "p.yaml"});
    EXPECT_EQ(saturday.status, 0) << saturday.err;
    EXPECT_EQ(saturday.err, "");
    EXPECT_THAT(saturday.out, testing::ContainsRegex("longest wait +9 min 30 s +1 day 12 h\n"));
    EXPECT_THAT(policy({"simulate", "--trace", trace(), "--begins", "noon", "p.yaml"}).err,
                HasSubstr("--begins: 'noon' is not a date and time, as 2026-11-02T08:00"));
    EXPECT_THAT(
        policy({"simulate", "--from-accounting", "2d", "--begins", "2026-11-07", "p.yaml"}).status,
        2);
}

TEST_F(PolicySimulate, LetsNodesFail)
{
    std::ofstream trace_of_a_month(m_dir / "month.csv");
    trace_of_a_month << "submit_s,duration_s,gpus\n";
    for (int i = 0; i < 720; ++i) {
        trace_of_a_month << i * 3600 << ",3600,4\n";
    }
    trace_of_a_month.close();
    const auto with = [&](const std::string& failures) {
        return policy(
            {"simulate", "--trace", m_dir / "month.csv", "--node-failures", failures, "p.yaml"});
    };
    EXPECT_THAT(with("2d").out, testing::ContainsRegex("runs whose node failed +[1-9]"));
    EXPECT_THAT(with("2d,1d").out, testing::ContainsRegex("runs whose node failed +[1-9]"));
    EXPECT_THAT(policy({"simulate", "--trace", m_dir / "month.csv", "p.yaml"}).out,
                Not(HasSubstr("node failed")));
    for (const char* wrong : {"2", "d", "2d,", "2d,1s", "1min", ",4h"}) {
        EXPECT_EQ(with(wrong).status, 2) << wrong;
    }
    EXPECT_THAT(with("never").err, HasSubstr("--node-failures: 'never': expected a time"));
}

TEST_F(PolicySimulate, TellsWhoWaitsLongestAndInWhichPartition)
{
    m_services.files["p.yaml"].text = "version: 1\npools: {all: {nodes: n1, gpus: 4}}\nqueues:\n"
                                      "  q: {time: 2h, pools: all}\n";
    std::ofstream(m_dir / "<b>&.csv") << "submit_s,duration_s,gpus,user\n0,3600,4,ada\n"
                                         "60,600,4,b\x1bn\n";
    const Use shown = policy({"simulate", "--trace", trace(), "p.yaml"});
    EXPECT_THAT(shown.out, testing::ContainsRegex("PARTITION +RUNS +HALF WAIT +95 % WAIT"));
    EXPECT_THAT(shown.out, testing::ContainsRegex("USER +RUNS +95 % WAIT, plain queue"));
    const std::size_t longest = shown.out.find("b^[n");
    ASSERT_NE(longest, std::string::npos) << shown.out;
    EXPECT_LT(longest, shown.out.find("ada"));
    const std::string page = m_dir / "page.html";
    ASSERT_EQ(policy({"simulate", "--trace", trace(), "--html", page, "p.yaml"}).status, 0);
    EXPECT_THAT(content(page), HasSubstr("Who waits longest"));
}

TEST_F(PolicySimulate, WritesAPageThatHoldsTheTableAndIsWhole)
{
    const fs::path file = m_dir / "page.html";
    const Use shown = policy({"simulate", "--trace", trace(), "--html", file, "p.yaml"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.err, HasSubstr("wrote " + file.string()));
    const std::string page = content(file);
    EXPECT_THAT(page, HasSubstr("<th scope=\"row\">runs refused</th><td class=\"right\">0</td>"
                                "<td class=\"right\">1</td>"));
    for (const char* chart : {"waits", "waiting", "use"}) {
        EXPECT_THAT(page, HasSubstr(std::string("<svg class=\"wide\" viewBox=\"0 0 860 320\" "
                                                "role=\"img\" aria-labelledby=\"") +
                                    chart + "-wide-title"));
    }
    EXPECT_THAT(page, HasSubstr("&lt;b&gt;&amp;.csv"));
    EXPECT_THAT(page, Not(HasSubstr("<b>")));
    EXPECT_THAT(page, Not(HasSubstr("nan")));
    EXPECT_TRUE(page.ends_with("</body>\n</html>\n"));
}

TEST_F(PolicySimulate, APageThatCanNotBeWrittenIsToldBeforeAnythingElse)
{
    const Use refused =
        policy({"simulate", "--trace", "none.csv", "--html", m_dir / "no" / "x.html", "p.yaml"});
    EXPECT_NE(refused.status, 0);
    EXPECT_THAT(refused.err, HasSubstr("no/x.html: No such file or directory"));
}

TEST_F(PolicySimulate, DrawsATraceOfWhichNothingIsTaken)
{
    std::ofstream(m_dir / "wide.csv") << "submit_s,duration_s,gpus\n0,60,8\n";
    const fs::path file = m_dir / "page.html";
    const Use shown = policy({"simulate", "--trace", m_dir / "wide.csv", "--html", file, "p.yaml"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, testing::ContainsRegex("start within 2 h +100.0 % +-\n"));
    EXPECT_THAT(content(file), Not(HasSubstr("nan")));
}

TEST_F(PolicySimulate, ATraceWithNothingToSimulateIsNoAnswer)
{
    const std::string sacct = "JobID|Submit|Start|End|Elapsed|ReqTRES\n";
    for (const std::string& text :
         {std::string("submit_s,duration_s,gpus\n"), std::string("; swf\n"), sacct}) {
        std::ofstream(m_dir / "empty") << text;
        const Use shown = policy({"simulate", "--trace", m_dir / "empty", "p.yaml"});
        EXPECT_EQ(shown.status, 2) << text;
        EXPECT_EQ(shown.out, "");
        EXPECT_THAT(shown.err, HasSubstr("/empty: nothing to simulate: no job in it had a GPU and "
                                         "ran (0 without GPUs, 0 not started)"));
    }
    std::ofstream(m_dir / "empty") << sacct << "1|2026-11-20T10:00:00|Unknown|||gres/gpu=1\n"
                                   << "2|2026-11-20T10:00:00|2026-11-20T10:00:00||00:01:00|cpu=1\n";
    EXPECT_THAT(policy({"simulate", "--trace", m_dir / "empty", "p.yaml"}).err,
                HasSubstr("(1 without GPUs, 1 not started)"));
}

TEST_F(PolicySimulate, TellsWhatIsLeftOut)
{
    std::ofstream(m_dir / "t.csv") << "submit_s,duration_s,gpus\n0,60,1\n0,60,0\n0,60,0\n";
    const Use shown = policy({"simulate", "--trace", m_dir / "t.csv", "p.yaml"});
    EXPECT_THAT(shown.out, HasSubstr("t.csv: left out: 2 jobs without GPUs\n"));
    Globals json;
    json.json = true;
    EXPECT_THAT(policy({"simulate", "--trace", m_dir / "t.csv", "p.yaml"}, json).out,
                testing::ContainsRegex("\"left_out\": \\{[^}]*\"without_gpus\": 2"));
}

TEST_F(PolicySimulate, TakesTheJobsOfTheAccounting)
{
    m_services.accounted = std::string(
        "Submit|JobID|User|Start|End|Elapsed|Timelimit|ReqTRES\n"
        "2026-11-20T10:00:00|7|ada|2026-11-20T10:00:05|2026-11-20T10:10:05|00:10:00|01:00:00|"
        "gres/gpu=1\n");
    const Use shown = policy({"simulate", "--from-accounting", "2w", "p.yaml"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, testing::ContainsRegex("runs of at most 2 h +1 +1\n"));
    EXPECT_EQ(m_services.accounted_since, m_services.time.now() - std::chrono::days{14});
    Globals json;
    json.json = true;
    EXPECT_THAT(policy({"simulate", "--from-accounting", "36h", "p.yaml"}, json).out,
                HasSubstr("\"trace\": \"accounting of the last 1 day 12 h\""));
}

TEST_F(PolicySimulate, SaysWhatToDoWithoutAnAccounting)
{
    const Use silent = policy({"simulate", "--from-accounting", "14d", "p.yaml"});
    EXPECT_EQ(silent.status, 120);
    EXPECT_THAT(silent.err, HasSubstr("slurmdbd does not answer; where sacct works"));
    m_services.accounted = std::string("Submit|JobID|ReqTRES|Start|End\n"
                                       "2026-11-20T10:00:00|7|cpu=1|2026-11-20T10:00:00|\n");
    const Use none = policy({"simulate", "--from-accounting", "14d", "p.yaml"});
    EXPECT_NE(none.status, 0);
    EXPECT_THAT(none.err, HasSubstr("accounting shows no job of the last 14 days that had a GPU "
                                    "and started (1 without GPUs, 0 not started)"));
}

TEST_F(PolicySimulate, TakesOneSourceOfJobs)
{
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"simulate", "p.yaml"},
          {"simulate", "--trace", trace(), "--from-accounting", "14d", "p.yaml"},
          {"simulate", "--from-accounting", "8", "p.yaml"},
          {"simulate", "--from-accounting", "2 weeks", "p.yaml"}}) {
        const Use refused = policy(arguments);
        EXPECT_EQ(refused.status, 2) << refused.out;
        EXPECT_THAT(refused.err, HasSubstr("--from-accounting"));
    }
}

} // namespace
} // namespace gpuq::cli
