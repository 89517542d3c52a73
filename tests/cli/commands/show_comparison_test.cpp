// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "core/layout.h"
#include "runs/run_on_disk.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ShowComparison : public testing::Test {
protected:
    FakeServices m_services;
    std::filesystem::path m_dir;

    ShowComparison()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
        std::string dir = testing::TempDir() + "/gpuq_compare_XXXXXX";
        m_dir = ::mkdtemp(dir.data());
    }
    ~ShowComparison() override { std::filesystem::remove_all(m_dir); }

    Time now() { return m_services.time.now(); }

    /// An ended run, with this output.
    RunOnDisk run(unsigned char number, const std::string& name,
                  const std::vector<std::string>& program, const std::string& output)
    {
        gpuq::Run record = fakes::some_run(now() - 1h, name, number);
        record.request.program = program;
        record.request.gpus.count = 2;
        RunOnDisk one(m_services.memory, record);
        one.submitted(JobId{number}).started(JobId{number}, now() - 30min);
        one.ended({0, Cause::finished, "", now() - 15min});
        if (!m_services.memory.write(layout::log(one.key(), LinkNumber{1}, Stream::out), output)) {
            std::abort();
        }
        return one;
    }

    /// Three runs with different settings; the last has printed no metric.
    void three_runs()
    {
        run(8, "slow", {"/usr/bin/python3", "train.py", "--lr", "0.01", "--seed", "1", "data"},
            "step 1/3 loss 2.5 acc 0.1\nstep 2/3 loss 2.25 acc 0.2\nstep 3/3 loss 2 acc 0.3\n");
        run(9, "fast", {"/usr/bin/python3", "train.py", "--lr=0.1", "--amp", "--seed=1", "data"},
            "step 1/3 loss 2.5 acc 0.1\nstep 2/3 loss 1.5 acc 0.5\nstep 3/3 loss 1.75 acc 0.4\n");
        run(10, "mute", {"/usr/bin/python3", "train.py", "model.depth=3", "--seed", "1", "data"},
            "hello\n");
    }

    Use compare(std::vector<std::string> arguments, const Globals& globals = {})
    {
        arguments.insert(arguments.begin(), "--compare");
        return use(k_show_verb, m_services, arguments, globals);
    }
    /// The document without blanks and line ends.
    std::string document(const std::vector<std::string>& arguments)
    {
        Globals globals;
        globals.json = true;
        std::string text = compare(arguments, globals).out;
        std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
        return text;
    }
};

/// The elements of a page that are not closed, or not in the right order.
std::vector<std::string> not_closed(const std::string& page)
{
    std::vector<std::string> open;
    const std::regex tag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
    for (std::sregex_iterator at(page.begin(), page.end(), tag); at != std::sregex_iterator();
         ++at) {
        const std::string name = (*at)[2];
        if (name == "meta" || (*at)[3] == "/") {
            continue;
        }
        if ((*at)[1] != "/") {
            open.push_back(name);
        } else if (!open.empty() && open.back() == name) {
            open.pop_back();
        } else {
            open.push_back("/" + name);
        }
    }
    return open;
}

TEST_F(ShowComparison, ShowsWhatDiffersAndWhichIsBest)
{
    three_runs();
    const Use shown = compare({"8", "fast", "mute"});
    EXPECT_EQ(shown.status, 0);
    EXPECT_EQ(shown.err, "");
    EXPECT_EQ("\n" + shown.out, R"(
ID  NAME  STATE  EXIT    TIME  GPU-HOURS
 8  slow  done      0  15 min       0.50
 9  fast  done      0  15 min       0.50
10  mute  done      0  15 min       0.50

SETTING         8    9  10
--lr         0.01  0.1   -
--amp           -  yes   -
model.depth     -    -   3

METRIC            8          9  10
loss best    2 at 3   1.5 at 2   ?
loss last    2 at 3  1.75 at 3   ?
acc best   0.3 at 3   0.5 at 2   ?
acc last   0.3 at 3   0.4 at 3   ?

best loss: 1.5 at step 2 in run 9 (fast)
best acc: 0.5 at step 2 in run 9 (fast)
no metrics found: 10
)");
    EXPECT_THAT(m_services.slurm.requests, IsEmpty());
}

TEST_F(ShowComparison, ShowsManyRunsInRows)
{
    std::vector<std::string> names;
    for (unsigned char number = 1; number <= 20; ++number) {
        names.push_back(std::to_string(number));
        std::vector<std::string> program = {"/bin/train"};
        for (int option = 0; option < 6; ++option) {
            program.push_back(fmt::format("--option{}={}", option, number));
        }
        run(number, "train", program, fmt::format("step 1/3 loss {}\n", number));
    }
    const Use shown = compare(names);
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("\nID  --option0  --option1  --option2  --option3\n"
                                     " 1          1          1          1          1\n"));
    EXPECT_THAT(shown.out, HasSubstr("\nID  --option4  --option5\n"));
    EXPECT_THAT(shown.out, HasSubstr("\n20    20 at 1    20 at 1\n"));
    std::istringstream lines(shown.out);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 80U) << line;
    }
    EXPECT_THAT(compare({"--html", "-", "1", "20"}).out, HasSubstr("class=\"line line1\""));
    names.emplace_back("21");
    EXPECT_EQ(compare(names).err, "--compare: at most 20 runs, not 21");
}

TEST_F(ShowComparison, TellsScriptsTheSame)
{
    three_runs();
    const std::string all = document({"8", "9", "10"});
    for (
        const char* part :
        {R"({"schema":1,"runs":[{"run":{)", R"("gpu_hours":0.5,"has_metrics":true,"source":null)",
         R"("gpu_hours":0.5,"has_metrics":false,"source":null)",
         R"("settings":[{"of":"arguments","name":"--lr","values":[{"kind":"given","text":"0.01"},)"
         R"({"kind":"given","text":"0.1"},{"kind":"absent","text":null}]},)",
         R"("name":"--amp","values":[{"kind":"absent","text":null},{"kind":"switched","text":null})",
         R"("metrics":[{"name":"loss","main_loss":true,"better":"lower","best_run":1,"series":[{)",
         R"("tag":"loss","points":3,"best":{"step":2,"value":1.5},"lowest":{"step":2,"value":1.5},)"
         R"("highest":{"step":1,"value":2.5},"last":{"step":3,"value":1.75},)"
         R"("curve":[[1,2.5],[2,1.5],[3,1.75]]},null]})",
         R"("name":"acc","main_loss":false,"better":"higher","best_run":1,)",
         R"("metrics_left_out":0,"metrics_not_common":0,"same_file":[],"warnings":[]})"}) {
        EXPECT_THAT(all, HasSubstr(part));
    }
}

TEST_F(ShowComparison, AsksSlurmOnceForAllRuns)
{
    for (unsigned char number = 1; number <= 3; ++number) {
        RunOnDisk(m_services.memory, fakes::some_run(now() - 1h, "late", number))
            .submitted(JobId{number});
        Job waiting;
        waiting.id = JobId{number};
        waiting.state = JobState::pending;
        m_services.slurm.jobs.push_back(waiting);
    }
    EXPECT_THAT(compare({"1", "2", "3"}).out, HasSubstr("\n 2  late  waiting: just queued  "));
    EXPECT_EQ(m_services.slurm.requests.size(), 1U);
    m_services.slurm.silent = true;
    const Use silent = compare({"1", "2"});
    EXPECT_EQ(silent.status, 0);
    EXPECT_EQ(silent.err, "gpuq: Slurm does not answer; showing the state on disk\n");
    EXPECT_THAT(silent.out, HasSubstr("?"));
}

TEST_F(ShowComparison, WritesAPageWithAChartOfEachMetric)
{
    three_runs();
    const auto file = m_dir / "c.html";
    const Use outcome = compare({"--html", file, "8", "9", "10"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("best loss"));
    EXPECT_EQ(outcome.err, "gpuq: wrote " + file.string() + "\n");
    std::ifstream stream(file);
    const std::string page{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_EQ(compare({"--html", "-", "8", "9", "10"}).out, page);
    EXPECT_TRUE(page.ends_with("</body>\n</html>\n"));
    EXPECT_THAT(not_closed(page), IsEmpty());
    for (const char* part :
         {"<h1>Comparison of 3 runs</h1>", "<h2>Settings</h2>", "<h2>loss</h2>", "<h2>acc</h2>",
          "<span>8 (slow)</span>", "<span>9 (fast)</span>", "class=\"line line1\"",
          "best loss: 1.5 at step 2 in run 9 (fast)", "no metrics found: 10"}) {
        EXPECT_THAT(page, HasSubstr(part));
    }
    for (const char* none : {"nan", "inf\"", "http://", "https://", "url(", "<script"}) {
        EXPECT_THAT(page, Not(HasSubstr(none)));
    }
}

TEST_F(ShowComparison, NothingFromOutsideIsTakenForThePage)
{
    const std::string evil = "<script>\"'&</script>\x1b]0;x\x07\u202e";
    run(8, "n" + evil, {"/bin/train", "--a" + evil + "=" + evil, evil},
        "step 1/3 loss 2.5\nstep 2/3 loss 1\n");
    run(9, "m" + evil, {"/bin/train", "x"}, "step 1/3 loss 2.5\nstep 2/3 loss nan\n");
    const Use page = compare({"--html", "-", "8", "9"});
    EXPECT_EQ(page.status, 0) << page.err;
    EXPECT_THAT(not_closed(page.out), IsEmpty());
    EXPECT_THAT(page.out, HasSubstr("&lt;script&gt;&quot;&#39;&amp;&lt;/script&gt;"));
    for (const char* raw : {"<script", "\x1b", "\x07", "\u202e"}) {
        EXPECT_THAT(page.out, Not(HasSubstr(raw)));
    }
    const Use text = compare({"8", "9"});
    for (const char* raw : {"\x1b", "\x07", "\u202e"}) {
        EXPECT_THAT(text.out + text.err, Not(HasSubstr(raw)));
    }
    Globals json;
    json.json = true;
    EXPECT_THAT(compare({"8", "9"}, json).out, Not(HasSubstr("\x1b")));
}

TEST_F(ShowComparison, NeverShowsASecret)
{
    RunOnDisk one = run(8, "a", {"/bin/train", "--token", "hunter2", "--x=hunter3"}, "");
    gpuq::Run record = fakes::some_run(now() - 1h, "b", 9);
    record.request.setup.env = {{"LR", "hunter4"}};
    record.environment = {"MY_SECRET=hunter3"};
    RunOnDisk(m_services.memory, record).submitted(JobId{9}).started(JobId{9}, now());
    Globals json;
    json.json = true;
    for (const std::string& text : {compare({"8", "9"}).out, compare({"8", "9"}, json).out,
                                    compare({"--html", "-", "8", "9"}).out}) {
        EXPECT_THAT(text, HasSubstr("env LR"));
        EXPECT_THAT(text, HasSubstr("value 1"));
        EXPECT_THAT(text, Not(HasSubstr("hunter")));
    }
}

TEST_F(ShowComparison, SaysWhatIsWrongWithTheArguments)
{
    three_runs();
    EXPECT_EQ(compare({}).err,
              "which runs? gpuq show --compare RUN RUN...; gpuq ls --all lists them");
    EXPECT_EQ(compare({"8"}).status, 2);
    EXPECT_EQ(compare({"8", "9", "slow"}).err, "--compare: 8 and slow are the same run");
    EXPECT_EQ(compare({"8", "nothing"}).status, 2);
    EXPECT_EQ(use(k_show_verb, m_services, {"8", "9"}).err,
              "one run at a time; --compare compares several");
    EXPECT_THAT(use(k_show_verb, m_services, {"--html", "x", "8"}).err,
                HasSubstr("--html: only with --compare"));
    Globals json;
    json.json = true;
    EXPECT_EQ(compare({"--html", "-", "8", "9"}, json).status, 2);
    EXPECT_THAT(compare({"--html", m_dir / "no" / "c.html", "8", "9"}).err,
                HasSubstr("no/c.html: No such file or directory"));
    Job plain;
    plain.id = JobId{20};
    plain.name = "mine";
    plain.state = JobState::running;
    m_services.slurm.jobs.push_back(plain);
    const Use refused = compare({"8", "20"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("is a plain Slurm job, which gpuq show --compare does not "
                                       "support: "));
}

} // namespace
} // namespace gpuq::cli
