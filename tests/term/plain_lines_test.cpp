// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/plain_lines.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

TEST(PlainLines, AreTheLastOnes)
{
    EXPECT_EQ(plain_lines("one\r\ntwo\r\nthree\r\n$ ", 3), "two\r\nthree\r\n$ ");
    EXPECT_EQ(plain_lines("one\r\ntwo", 1), "two");
    EXPECT_EQ(plain_lines("", 24), "");
}

TEST(PlainLines, ShowALineAsItWasEdited)
{
    EXPECT_EQ(plain_lines("$ gti\b\b\x1b[Kit", 5), "$ git");
    EXPECT_EQ(plain_lines("10 %\r 20 %\rdone", 5), "done%");
    EXPECT_EQ(plain_lines("abcd\x1b[2D\x1b[P", 5), "abd");
    EXPECT_EQ(plain_lines("ad\b\x1b[2@bc", 5), "abcd");
    EXPECT_EQ(plain_lines("a\tb", 5), "a       b");
}

TEST(PlainLines, HaveNoCommandsForATerminal)
{
    EXPECT_EQ(plain_lines("\x1b[1;31mred\x1b[m \x1b]0;title\x07"
                          "a\x1b(Bb\x1b[6n\x07\x9b"
                          "c",
                          5),
              "red abc");
    EXPECT_EQ(plain_lines("a\x1b[", 5), "a");
    EXPECT_EQ(plain_lines("a\x1b", 5), "a");
    EXPECT_EQ(plain_lines("a\x1b]0;x", 5), "a");
}

TEST(PlainLines, AreNoLongerThanThoseOfATerminal)
{
    std::string widening = "x\r";
    for (int i = 0; i < 1000; ++i) {
        widening += "\x1b[4096@";
    }
    EXPECT_EQ(plain_lines(widening, 5).size(), 4096U);
    std::string many;
    for (int i = 0; i < 1000; ++i) {
        many += "x\r\x1b[4096@\n";
    }
    const std::string shown = plain_lines(many + "end", 60000);
    EXPECT_LT(shown.size(), 300'000U);
    EXPECT_GT(shown.size(), 200'000U);
    EXPECT_EQ(shown.substr(shown.size() - 5), "\r\nend");
}

TEST(PlainLines, KeepWholeCharacters)
{
    EXPECT_EQ(plain_lines("größe\b\bß€", 5), "größ€");
    EXPECT_EQ(plain_lines("a\xe2\x82", 5), "a\xe2\x82"); // truncated at the end
}

} // namespace
} // namespace gpuq
