// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"
#include "cli/host/local_ports.h"
#include "cli/start/notebook_carry.h"
#include "cli/start/run_options.h"

#include "cli/fake_services.h"
#include "runs/notebook.h"
#include "runs/run_on_disk.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace gpuq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NotebookVerb, RejectsWhatItCanNotDoBeforeItStarts)
{
    const std::vector<std::pair<std::vector<std::string>, std::string>> k_wrong = {
        {{"a", "b"}, "one directory at most"},
        {{"--lab", "--classic"}, "--lab: --classic is given as well"},
        {{"--port", "0"}, "--port: '0' is not a number from 1 to 65535"},
        {{"--port", "65536"}, "--port: '65536'"},
        {{"--idle", "soon"}, "--idle: "},
        {{"--idle", "1s"}, "--idle: too short"},
    };
    for (const auto& [arguments, text] : k_wrong) {
        FakeServices services;
        const Use result = use(k_notebook_verb, services, arguments);
        EXPECT_EQ(result.status, 2);
        EXPECT_THAT(result.err, HasSubstr(text));
        EXPECT_EQ(services.slurm_opened, 0);
        EXPECT_TRUE(services.memory.files.empty());
    }
}

TEST(NotebookIdle, IsThatOfTheQueueAtMost)
{
    using namespace std::chrono_literals;
    const auto idle = [](const std::vector<std::string>& arguments,
                         const std::vector<NotebookIdle>& rules) {
        return notebook_idle(
            parse_options(notebook_option_table(), Order::mixed, arguments)->options, rules);
    };
    const std::vector<NotebookIdle> rules = {{"gpu", 2h, "2 h (policy.yaml:9)"},
                                             {"lessons", 20min, "20 min (policy.yaml:12)"}};
    EXPECT_EQ(*idle({}, {}), 30min);
    EXPECT_EQ(*idle({}, rules), 20min);
    EXPECT_EQ(*idle({}, {rules[0]}), 2h);
    EXPECT_EQ(*idle({"--idle=5m"}, rules), 5min);
    EXPECT_EQ(*idle({"--idle=never"}, {}), 0s);
    for (const char* const more : {"21m", "never"}) {
        const auto refused = idle({fmt::format("--idle={}", more)}, rules);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error(),
                  fail(Error::Kind::denied,
                       fmt::format("--idle {}: queue lessons ends notebooks that are unused for "
                                   "20 min (policy.yaml:12)",
                                   more)));
    }
}

/// No connection is made.
class ServicesWithoutProgram : public FakeServices {
public:
    Result<std::string> program() override { return fail(Error::Kind::internal, "no program"); }
};

TEST(NotebookVerb, FindsAnOlderNotebookIfTheNewestOneIsLost)
{
    using namespace std::chrono_literals;
    ServicesWithoutProgram services;
    const Time now = services.time.now();
    const std::string directory = std::filesystem::canonical(testing::TempDir()).string();
    const auto add = [&](JobId job, Time begun) {
        fakes::RunOnDisk made(
            services.memory,
            fakes::some_run(begun, "notebook", static_cast<unsigned char>(job.value)));
        EXPECT_TRUE(write_notebook(services.memory, made.key(), {directory, {}, 0s, "/supervisor"},
                                   std::string(48, '1')));
        return made.submitted(job).started(job, begun);
    };
    add(JobId{7}, now - 20min).beat(JobId{7}, now);
    add(JobId{8}, now - 10min); // Slurm does not know its job any more
    const Use result = use(k_notebook_verb, services, {"--carry", directory});
    EXPECT_THAT(result.err, HasSubstr("the notebook of " + directory + " is run 7;"));
    EXPECT_THAT(result.err, HasSubstr("no program"));
}

TEST(ForwardVerb, RejectsWhatItCanNotDoBeforeItStarts)
{
    const std::vector<std::pair<std::vector<std::string>, std::string>> k_wrong = {
        {{}, "missing run or port"},
        {{"last"}, "missing run or port"},
        {{"last", "0"}, "'0': expected PORT"},
        {{"last", "80:-x:80"}, "expected PORT"},
    };
    for (const auto& [arguments, text] : k_wrong) {
        FakeServices services;
        const Use result = use(k_forward_verb, services, arguments);
        EXPECT_EQ(result.status, 2);
        EXPECT_THAT(result.err, HasSubstr(text));
    }
}

TEST(LocalPorts, TheOptionsGivenArePassedOnAsTheyWere)
{
    const auto table = notebook_option_table();
    const auto parsed =
        parse_options(table, Order::mixed, {"-t2h", "--env", "A=b c", "--env=B", "--lab", "dir"});
    ASSERT_TRUE(parsed);
    const auto arguments = arguments_of(parsed->options, table);
    EXPECT_THAT(arguments,
                testing::UnorderedElementsAre("--time=2h", "--env=A=b c", "--env=B", "--lab"));
    const auto again = parse_options(table, Order::mixed, arguments);
    ASSERT_TRUE(again);
    EXPECT_THAT(again->options.values("env"), ElementsAre("A=b c", "B"));
}

TEST(LocalPorts, APortInUseIsSkippedUnlessItIsChosen)
{
    const auto first = listen_for_page(std::nullopt);
    ASSERT_TRUE(first);
    const auto second = listen_for_page(std::nullopt);
    ASSERT_TRUE(second);
    EXPECT_GT(second->port, first->port);
    const auto none = listen_for_page(first->port);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().text, HasSubstr("is in use"));
}

TEST(BrowserPage, ACommandThatFailsAtOnceIsReported)
{
    const auto failed = BrowserPage::open("false", "http://localhost:1/");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().text, "false: failed with status 1");
    EXPECT_TRUE(BrowserPage::open("true", "http://localhost:1/"));
    EXPECT_FALSE(BrowserPage::open("/nonexistent/browser", "http://localhost:1/"));
}

TEST(ForwardVerb, ShowsHowToChooseAnotherPort)
{
    const auto taken = listen_for_page(std::nullopt);
    ASSERT_TRUE(taken);
    for (const auto& [given, shown] :
         {std::pair("{}", "{}:{}"), std::pair("{}:n1:80", "{}:n1:80")}) {
        FakeServices services;
        const Use result =
            use(k_forward_verb, services, {"last", fmt::format(fmt::runtime(given), taken->port)});
        EXPECT_EQ(result.status, 2);
        EXPECT_THAT(result.err,
                    HasSubstr("is in use: choose another, as in " +
                              fmt::format(fmt::runtime(shown), taken->port + 1, taken->port)));
    }
}

TEST(LocalPorts, OnlyTheseVerbsListenHere)
{
    EXPECT_TRUE(listens_here("notebook"));
    EXPECT_TRUE(listens_here("forward"));
    EXPECT_FALSE(listens_here("run"));
}

} // namespace
} // namespace gpuq::cli
