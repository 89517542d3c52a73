// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Strings, SplitKeepsEmptyParts)
{
    EXPECT_THAT(split("a,b", ","), ElementsAre("a", "b"));
    EXPECT_THAT(split(",a,,b,", ","), ElementsAre("", "a", "", "b", ""));
    EXPECT_THAT(split("", ","), ElementsAre(""));
    EXPECT_THAT(split("gpu:a100=2", ":="), ElementsAre("gpu", "a100", "2"));
    EXPECT_THAT(split("a,b", ""), ElementsAre("a,b"));
}

TEST(Strings, WordsAreThePartsThatAreNotEmpty)
{
    EXPECT_THAT(fields("  a \tb ", " \t"), ElementsAre("a", "b"));
    EXPECT_THAT(fields(",a,,b,", ","), ElementsAre("a", "b"));
    EXPECT_THAT(fields("", ","), IsEmpty());
    EXPECT_THAT(fields(",,", ","), IsEmpty());
}

TEST(Strings, CutIsAtTheFirstSeparator)
{
    EXPECT_THAT(cut("NAME=a=b", '='), Pair("NAME", "a=b"));
    EXPECT_THAT(cut("NAME", '='), Pair("NAME", ""));
    EXPECT_THAT(cut("NAME=", '='), Pair("NAME", ""));
    EXPECT_THAT(cut("=a", '='), Pair("", "a"));
    EXPECT_THAT(cut("", '='), Pair("", ""));
}

TEST(Strings, TrimmedHasNoWhiteSpaceAtItsEnds)
{
    EXPECT_EQ(trimmed(" \t\r\n a b \v\f"), "a b");
    EXPECT_EQ(trimmed("ab"), "ab");
    EXPECT_EQ(trimmed(" \n"), "");
    EXPECT_EQ(trimmed(""), "");
}

} // namespace
} // namespace gpuq
