// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/nearest.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

const std::vector<std::string> k_verbs = {"run", "logs", "ls", "stop", "cluster", "completion"};

TEST(Nearest, FindsSlipsOfTheFinger)
{
    EXPECT_EQ(nearest("rnu", k_verbs), "run");
    EXPECT_EQ(nearest("log", k_verbs), "logs");
    EXPECT_EQ(nearest("clutser", k_verbs), "cluster");
    EXPECT_EQ(nearest("stopp", k_verbs), "stop");
    EXPECT_EQ(did_you_mean("stpo", k_verbs), " (did you mean 'stop'?)");
}

TEST(Nearest, FindsTheOneThatBeginsWithTheWord)
{
    EXPECT_EQ(nearest("compl", k_verbs), "completion");
    EXPECT_EQ(nearest("clu", k_verbs), "cluster");
    EXPECT_EQ(nearest("c", k_verbs), std::nullopt);
    EXPECT_EQ(nearest("calib", {"calibration", "calibrate"}), std::nullopt); // ambiguous
}

TEST(Nearest, FindsNothingFarAway)
{
    EXPECT_EQ(nearest("frobnicate", k_verbs), std::nullopt);
    EXPECT_EQ(nearest("", k_verbs), std::nullopt);
    EXPECT_EQ(nearest("xy", k_verbs), std::nullopt);
    EXPECT_EQ(nearest(std::string(100000, 'a'), k_verbs), std::nullopt);
    EXPECT_EQ(did_you_mean("frobnicate", k_verbs), "");
}

} // namespace
} // namespace gpuq
