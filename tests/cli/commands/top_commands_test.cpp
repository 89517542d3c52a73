// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/top_commands.h"

#include "cli/fake_services.h"
#include "report/json.h"

#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using Arguments = std::vector<std::string>;

TEST(TopCommands, ReportTheKeyOfTheRunThatTheyHaveStarted)
{
    FakeServices services;
    const std::string document = report::json_document({{"key", "20261130T1"}, {"job", 7}});
    services.machine.ended = {0, "gpuq: would use queue gpu\ngpuq: its output: gpuq logs -f 7\n" +
                                     document};
    TopCommands commands(services);
    const tui::Done done = commands.run({{"run", "--detach", "train.py"}});
    EXPECT_EQ(services.machine.executed.back(),
              (Arguments{"/usr/bin/gpuq", "--json", "run", "--detach", "train.py"}));
    EXPECT_EQ(done.started, "20261130T1");
    EXPECT_EQ(done.message, "would use queue gpu\nits output: gpuq logs -f 7");
    EXPECT_FALSE(done.failed);
    services.machine.ended.output = document + "gpuq: a warning\n";
    EXPECT_EQ(commands.run({{"run", "--detach", "train.py"}}).started, "20261130T1");
    EXPECT_EQ(commands.run({{"run", "--detach", "train.py"}}).message, "a warning");
    services.machine.ended = {121, "gpuq: refused by rule 3\n"};
    const tui::Done refused = commands.run({{"again", "--detach", "7"}});
    EXPECT_EQ(refused.started, "");
    EXPECT_EQ(refused.message, "refused by rule 3");
    EXPECT_TRUE(refused.failed);
}

/// Neither does the output of another command that looks like it.
TEST(TopCommands, HelpStartsNoRun)
{
    FakeServices services;
    services.machine.ended = {0, "usage: gpuq run\n"};
    TopCommands commands(services);
    const tui::Done help = commands.run({{"run", "--detach", "--help"}});
    EXPECT_EQ(help.started, "");
    EXPECT_EQ(help.message, "usage: gpuq run");
    services.machine.ended = {0, report::json_document({{"key", "20261130T1"}})};
    EXPECT_EQ(commands.run({{"stop", "7"}}).started, "");
    EXPECT_EQ(services.machine.executed.back(), (Arguments{"/usr/bin/gpuq", "stop", "7"}));
    services.machine.ended = {0, ""};
    EXPECT_EQ(commands.run({{"stop", "7"}}).message, "done");
}

} // namespace
} // namespace gpuq::cli
