// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/sacct.h"

#include "core/timestamp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::slurm {
namespace {

using testing::Contains;

const Time k_since = *time_from_iso8601("2026-11-08T12:00:00Z");

TEST(Sacct, IsAskedForTheJobsOfEverybody)
{
    const auto arguments = sacct_command(k_since);
    EXPECT_EQ(arguments.front(), "sacct");
    EXPECT_THAT(arguments, Contains("--allusers"));
    EXPECT_THAT(arguments, Contains("--starttime=2026-11-08T12:00:00"));
}

TEST(Sacct, WhatWasSubmittedBeforeIsLeftOut)
{
    EXPECT_EQ(submitted_since("Submit|JobID\n"
                              "2026-11-08T11:59:59|1\n"
                              "2026-11-08T12:00:00|2\n"
                              "Unknown|3\n"
                              "2026-11-09T00:00:00|4",
                              k_since),
              "Submit|JobID\n2026-11-08T12:00:00|2\n2026-11-09T00:00:00|4\n");
    EXPECT_EQ(submitted_since("", k_since), "");
}

} // namespace
} // namespace gpuq::slurm
