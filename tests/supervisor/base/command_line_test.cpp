// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/command_line.h"

#include "core/layout.h"

#include <gtest/gtest.h>

#include <map>

namespace gpuq::supervisor {
namespace {

const std::string k_key = "20261120T131158.042Z-0f3a9c1e5b7d2468";

Result<CommandLine> parsed(const std::vector<std::string>& arguments,
                           const std::map<std::string, std::string>& variables = {})
{
    return parse_command_line(
        arguments,
        [&](const char* name) {
            const auto found = variables.find(name);
            return found == variables.end() ? std::nullopt : std::optional(found->second);
        },
        "host");
}

TEST(CommandLine, IsWhatStepAndScriptSay)
{
    const auto line =
        parsed({"run", "/state", k_key, "2", "--first"}, {{"SLURM_JOB_ID", "4242"},
                                                          {"SLURMD_NODENAME", "n1"},
                                                          {"SLURM_JOB_END_TIME", "1795180318"}});
    ASSERT_TRUE(line);
    EXPECT_EQ(line->task, Task::run);
    EXPECT_TRUE(line->options.first);
    EXPECT_EQ(line->options.key.text(), k_key);
    EXPECT_EQ(line->options.link, LinkNumber{2});
    EXPECT_EQ(line->options.job, JobId{4242});
    EXPECT_EQ(line->options.node, "n1");
    EXPECT_EQ(line->options.ends_at, Time{std::chrono::seconds{1795180318}});
}

TEST(CommandLine, OutsideOfSlurmItKnowsLess)
{
    const auto line = parsed({"relay", "/state", k_key, "1"}, {{"SLURM_JOB_ID", "none"}});
    ASSERT_TRUE(line);
    EXPECT_EQ(line->task, Task::relay);
    EXPECT_FALSE(line->options.first);
    EXPECT_FALSE(line->options.job);
    EXPECT_EQ(line->options.node, "host");
}

TEST(CommandLine, HasATaskForEachWord)
{
    for (const auto& [word, task] :
         {std::pair("run", Task::run), std::pair("relay", Task::relay),
          std::pair("guard", Task::guard), std::pair("connect", Task::connect),
          std::pair("helper", Task::helper)}) {
        EXPECT_EQ(parsed({word, "/state", k_key, "1"})->task, task);
    }
}

TEST(CommandLine, ANoticeIsOfASignal)
{
    const auto line = parsed({"notice", "/state", k_key, "3", "USR2"});
    ASSERT_TRUE(line);
    EXPECT_EQ(line->task, Task::notice);
    EXPECT_EQ(line->notice, Notice::usr2);
    EXPECT_EQ(line->options.link, LinkNumber{3});
}

TEST(CommandLine, AnythingElseIsUsage)
{
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{},
                                               {"run"},
                                               {"jump", "/state", k_key, "1"},
                                               {"run", "state", k_key, "1"},
                                               {"run", "/state", "../../etc", "1"},
                                               {"run", "/state", k_key, "0"},
                                               {"run", "/state", k_key, "1x"},
                                               {"run", "/state", k_key, "1", "--last"},
                                               {"run", "/state", k_key, "1", "USR1"},
                                               {"notice", "/state", k_key, "1"},
                                               {"notice", "/state", k_key, "1", "KILL"},
                                               {"notice", "/state", k_key, "1", "--first"},
                                               {"run", "/state", k_key, "1", "--first", "x"}}) {
        EXPECT_FALSE(parsed(arguments)) << testing::PrintToString(arguments);
    }
}

} // namespace
} // namespace gpuq::supervisor
