// SPDX-License-Identifier: GPL-2.0-or-later
#include "log/level.h"

#include <gtest/gtest.h>

namespace gpuq::log {
namespace {

TEST(Levels, AGeneralLevelAndSingleOnesInAnyOrder)
{
    const Levels quiet = Levels::all(Level::warning);
    const auto levels = parse_levels("remote=trace,debug,slurm=off", quiet);
    ASSERT_TRUE(levels) << levels.error().text;
    EXPECT_EQ(levels->of(Part::remote), Level::trace);
    EXPECT_EQ(levels->of(Part::slurm), Level::off);
    EXPECT_EQ(levels->of(Part::client), Level::debug);
}

TEST(Levels, WithoutAGeneralLevelTheOtherPartsKeepTheirs)
{
    const auto levels = parse_levels("chain=debug", Levels::all(Level::warning));
    ASSERT_TRUE(levels);
    EXPECT_EQ(levels->of(Part::chain), Level::debug);
    EXPECT_EQ(levels->of(Part::tickets), Level::warning);
    EXPECT_EQ(*parse_levels("", Levels::all(Level::warning)), Levels::all(Level::warning));
}

TEST(Levels, AnUnknownNameIsRefusedWithTheKnownOnes)
{
    const auto level = parse_levels("loud", Levels::all(Level::off));
    ASSERT_FALSE(level);
    EXPECT_EQ(level.error().text, "GPUQ_LOG: unknown level 'loud'; levels: trace, debug, info, "
                                  "warning, error, off");
    const auto part = parse_levels("debug,disk=trace", Levels::all(Level::off));
    ASSERT_FALSE(part);
    EXPECT_EQ(part.error().text,
              "GPUQ_LOG: unknown part 'disk'; parts: command, client, remote, slurm, supervisor, "
              "chain, tickets, samples, cluster");
    EXPECT_FALSE(parse_levels("debug=", Levels::all(Level::off)));
}

} // namespace
} // namespace gpuq::log
