// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/log_text.h"

#include "term/sanitise.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace gpuq::tui {
namespace {

std::vector<std::string> texts_of(LogText& log)
{
    std::vector<std::string> texts;
    for (const Line& line : log.lines()) {
        texts.push_back(text_of(line));
    }
    return texts;
}

std::vector<std::string> shown(std::string_view bytes)
{
    LogText log;
    log.feed(bytes);
    return texts_of(log);
}

using Texts = std::vector<std::string>;

TEST(LogText, IsLines)
{
    EXPECT_EQ(shown(""), Texts{""});
    EXPECT_EQ(shown("one\ntwo"), (Texts{"one", "two"}));
    EXPECT_EQ(shown("one\r\ntwo\r\n"), (Texts{"one", "two", ""}));
    EXPECT_EQ(shown("a\tb"), Texts{"a       b"});
}

TEST(LogText, FoldsProgressBars)
{
    EXPECT_EQ(shown("10%|#  |\r20%|## |\r100%|###|\n"), (Texts{"100%|###|", ""}));
    EXPECT_EQ(shown("longer text\rshort\x1b[K\n"), (Texts{"short", ""}));
    EXPECT_EQ(shown("abc\b\bX"), Texts{"aXc"});
    // Two bars, one above the other, as drawn by nested tqdm.
    EXPECT_EQ(shown("outer 1\n\rinner 1\x1b[A\router 2\n\rinner 2"), (Texts{"outer 2", "inner 2"}));
}

TEST(LogText, DropsOtherSequences)
{
    EXPECT_EQ(shown("\x1b]0;title\amain\x1b[2J\x1b[6n\x1bP+q\x1b\\end"), Texts{"mainend"});
    EXPECT_EQ(shown("a\x1b]52;c;unfinished\nb"), (Texts{"ab"}));
    EXPECT_EQ(shown("a\x1b[12\nb"), (Texts{"a", "b"}));
    EXPECT_EQ(shown("a\x1b(B\x1b[mb\x1b)0c\x1b#8d\x1b(\ne"), (Texts{"abcd", "e"}));
}

TEST(LogText, KeepsColours)
{
    LogText log;
    log.feed("plain \x1b[1;31mred\x1b[0m \x1b[38;5;196mbright\x1b[39m\x1b[48;2;0;0;255mblue");
    const Line& line = log.lines().front();
    ASSERT_EQ(line.size(), 5U);
    EXPECT_EQ(line[1].text, "red");
    EXPECT_EQ(line[1].style.fg, 1);
    EXPECT_TRUE(line[1].style.bold);
    EXPECT_EQ(line[3].style.fg, 9);
    EXPECT_EQ(line[4].style.bg, 12);
}

TEST(LogText, PutsMarksOnTheirLetters)
{
    EXPECT_EQ(shown("re\u0301sume\u0301 最終"), Texts{"re\u0301sume\u0301 最終"});
    EXPECT_EQ(shown("\u0301"), Texts{"\\u{301}"});
}

TEST(LogText, IsTheSameInWhateverPiecesItComes)
{
    const std::string text = "é\x1b[31mre\x1b[0md\r最\xff\n\x1b]0;x\x1b\\tail\x1b[2Aup\n";
    LogText bytewise;
    for (const char byte : text) {
        bytewise.feed({&byte, 1});
        (void)bytewise.lines();
    }
    EXPECT_EQ(texts_of(bytewise), shown(text));
}

TEST(LogText, CountsTheBytesBeforeEachLine)
{
    LogText log;
    log.feed("one\n  5 %\r100 %\n");
    log.feed("\x1b[1A\x1b[32mdone");
    EXPECT_EQ(log.begin_of(0), 0U);
    EXPECT_EQ(log.begin_of(1), 4U);
    EXPECT_EQ(log.begin_of(2), 16U);
    for (std::size_t i = 0; i < LogText::k_most_lines; ++i) {
        log.feed("x\n");
    }
    EXPECT_EQ(log.begin_of(log.lines().size() - 1) - log.begin_of(log.lines().size() - 2), 2U);
}

TEST(LogText, HoldsNoMoreThanItSays)
{
    LogText log;
    for (std::size_t i = 0; i < LogText::k_most_lines + 100; ++i) {
        log.feed("line " + std::to_string(i) + "\n");
    }
    EXPECT_EQ(log.lines().size(), LogText::k_most_lines);
    EXPECT_EQ(text_of(log.lines()[LogText::k_most_lines - 2]),
              "line " + std::to_string(LogText::k_most_lines + 99));
    LogText wide;
    wide.feed(std::string(1 << 20, 'x'));
    EXPECT_EQ(text_of(wide.lines().back()), std::string(LogText::k_longest - 1, 'x') + "…");
    wide.feed("\nnext");
    EXPECT_EQ(text_of(wide.lines().back()), "next");
    LogText exact;
    exact.feed(std::string(LogText::k_longest, 'x'));
    EXPECT_EQ(text_of(exact.lines().back()), std::string(LogText::k_longest, 'x'));
    LogText colourful;
    for (int i = 0; i < 1000; ++i) {
        colourful.feed(i % 2 == 0 ? "\x1b[31mr" : "\x1b[32mg");
    }
    EXPECT_EQ(colourful.lines().back().size(), LogText::k_most_spans);
    EXPECT_EQ(text_of(colourful.lines().back()).size(), 1000U);
}

/// For any input, nothing is shown that a terminal would interpret.
TEST(LogText, ShowsNothingThatATerminalObeys)
{
    std::mt19937 random(7);
    const std::string_view alphabet =
        "\x1b[]0123456789;mAKJHPX\\\a\b\r\n\t\x9b\xc2\x9d\xe2\x80\xae\xf0 ab\x7f";
    for (int round = 0; round < 5'000; ++round) {
        LogText log;
        std::string bytes;
        for (std::size_t i = 0, size = random() % 60; i < size; ++i) {
            bytes += random() % 4 == 0 ? static_cast<char>(random())
                                       : alphabet[random() % alphabet.size()];
        }
        log.feed(bytes);
        for (const Line& line : log.lines()) {
            for (const Span& span : line) {
                for (const char c : span.text) {
                    const auto byte = static_cast<unsigned char>(c);
                    ASSERT_TRUE(byte >= 0x20 && byte != 0x7f) << round;
                }
                // The sanitiser would leave the text unchanged.
                ASSERT_EQ(sanitised(text_of(line)), text_of(line)) << round;
            }
        }
    }
}

} // namespace
} // namespace gpuq::tui
