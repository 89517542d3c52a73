// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/noted_use.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

TEST(NotedUse, ComesBackFromTheCommentOfAJob)
{
    const GpuTime use{3541s, 20s, 39s};
    EXPECT_EQ(to_note(use), "busy=3541 idle=20 unknown=39");
    EXPECT_EQ(noted_use("gpuq:20261120T131158.042Z-0f3a9c1e5b7d2468:2 " + to_note(use)), use);
    EXPECT_EQ(noted_use("gpuq:KEY busy=1 idle=2 unknown=3 and=4"), (GpuTime{1s, 2s, 3s}));
}

TEST(NotedUse, AddsUpToTheWholeSecondsThatWereAllocated)
{
    EXPECT_EQ(to_note({1500ms, 1500ms, 0ms}), "busy=2 idle=1 unknown=0");
    EXPECT_EQ(to_note({400ms, 400ms, 400ms}), "busy=0 idle=0 unknown=1");
    EXPECT_EQ(to_note({999ms, 0ms, 0ms}), "busy=0 idle=0 unknown=0");
}

TEST(NotedUse, IsNothingWhereThereIsNone)
{
    for (const char* comment :
         {"", " ", "gpuq:KEY", "gpuq:KEY ", "busy=1 idle=1 unknown=1", "a busy=1",
          "a busy=1 idle=1", "a busy=-1 idle=1 unknown=1", "a busy= idle=1 unknown=1",
          "a idle=1 busy=1 unknown=1", "a  busy=1 idle=1 unknown=1", "a busy=1 idle=1 unknown=1x",
          "a busy=999999999999999999 idle=1 unknown=1", "a busy=99999999999999999999 idle=1",
          "see the notes"}) {
        EXPECT_EQ(noted_use(comment), std::nullopt) << comment;
    }
}

} // namespace
} // namespace gpuq
