// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/message.h"
#include "cli/commands/verbs.h"

#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

constexpr const char* k_there = "gpuq --host login1";

TEST(Message, AHintIsWhatThePersonHasToTypeWhereTheySit)
{
    EXPECT_EQ(as_typed("run 8 continues. Back to it: gpuq attach 8, to end it: gpuq stop 8",
                       k_there, every_verb()),
              "run 8 continues. Back to it: gpuq --host login1 attach 8, to end it: gpuq --host "
              "login1 stop 8");
    EXPECT_EQ(as_typed("try `gpuq ls`; or gpuq why.", k_there, every_verb()),
              "try `gpuq --host login1 ls`; or gpuq --host login1 why.");
    EXPECT_EQ(as_typed("gpuq ls --all lists yours", k_there, every_verb()),
              "gpuq --host login1 ls --all lists yours");
}

TEST(Message, OtherWordsOfGpuqStayAsTheyAre)
{
    for (const char* const text :
         {"gpuq there is too old", "a file of mygpuq ls", "/usr/bin/gpuq ls", "gpuq run-like",
          "gpuq", "gpuq ", "gpuq --host login1 attach 8"}) {
        EXPECT_EQ(as_typed(text, k_there, every_verb()), text);
    }
}

TEST(Message, WhoSitsHereTypesGpuq)
{
    EXPECT_EQ(as_typed("gpuq attach 8", "", every_verb()), "gpuq attach 8");
    EXPECT_EQ(as_typed("gpuq attach 8", "gpuq", every_verb()), "gpuq attach 8");
    EXPECT_EQ(as_typed("gpuq attach 8"), "gpuq attach 8");
}

TEST(Message, AnAudienceHearsHowMuchIsGpuqsOwn)
{
    std::size_t own = 0;
    {
        const Audience audience(k_there, every_verb(), [&](std::size_t bytes) { own += bytes; });
        EXPECT_EQ(as_typed("gpuq ls"), "gpuq --host login1 ls");
        testing::internal::CaptureStderr();
        print_message("gpuq attach 8");
        const std::string line = testing::internal::GetCapturedStderr();
        EXPECT_EQ(line, "gpuq: gpuq --host login1 attach 8\n");
        EXPECT_EQ(own, line.size());
    }
    testing::internal::CaptureStderr();
    print_message("gpuq attach 8");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "gpuq: gpuq attach 8\n");
}

} // namespace
} // namespace gpuq::cli
