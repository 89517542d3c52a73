// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/printable.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace gpuq::cli {
namespace {

using Lines = Printable::Lines;

std::string printable(std::string_view bytes, Lines lines = Lines::whole)
{
    Printable printable(lines);
    std::string text = printable.feed(bytes);
    return text + printable.end();
}

TEST(Printable, KeepsTextTabsAndColours)
{
    EXPECT_EQ(printable("epoch\t1\nlast"), "epoch\t1\nlast\n");
    EXPECT_EQ(printable("\x1b[1;31mred\x1b[0m größe\n"), "\x1b[1;31mred\x1b[0m größe\n\x1b[0m");
}

TEST(Printable, ShowsAsTextWhatATerminalWouldObey)
{
    EXPECT_EQ(printable("\x1b]0;pwned\a\n"), "^[]0;pwned^G\n");
    EXPECT_EQ(printable("\x1b[2J\x1b[6n\x9b"
                        "31m\n"),
              "^[[2J^[[6n\\x9b31m\n");
    EXPECT_EQ(printable("\x1b[31"), "^[[31\n");
}

TEST(Printable, EndsALineWhereABarDrawsOverIt)
{
    EXPECT_EQ(printable("10%\r20%\r\nend\r\n"), "10%\n20%\nend\n");
}

TEST(Printable, IsTheSameInWhateverPiecesItComes)
{
    const std::string text = "é\x1b[31mre\x1b[0md\r\nde\xff\n\x1b]0;x\x1b\\tail\r";
    for (const Lines lines : {Lines::whole, Lines::live}) {
        Printable bytewise(lines);
        std::string shown;
        for (const char byte : text) {
            shown += bytewise.feed({&byte, 1});
        }
        EXPECT_EQ(shown + bytewise.end(), printable(text, lines));
        EXPECT_EQ(printable(text, lines), printable(text));
    }
}

TEST(Printable, ShowsAQuestionBeforeItsAnswer)
{
    Printable live(Lines::live);
    EXPECT_EQ(live.feed("old: 3\nremove them? [y/N] "), "old: 3\nremove them? [y/N] ");
    EXPECT_EQ(live.feed("\n\x1b[3"), "\n");
    EXPECT_EQ(live.feed("1mred"), "\x1b[31mred");
    EXPECT_EQ(live.feed("gr\xc3"), "gr");
    EXPECT_EQ(live.feed("\xb6\xff"), "ö\\xff");
    EXPECT_EQ(live.end(), "\n\x1b[0m");
}

TEST(Printable, RedrawsALineAsGpuqDoes)
{
    Printable live(Lines::live);
    EXPECT_EQ(live.feed("\r\x1b[Kgpuq: 3 before"), "\r\x1b[Kgpuq: 3 before");
    EXPECT_EQ(live.feed("\r"), "");
    EXPECT_EQ(live.feed("\x1b["), "");
    EXPECT_EQ(live.feed("Kgpuq: 2 before"), "\r\x1b[Kgpuq: 2 before");
    EXPECT_EQ(live.feed("\r\n"), "\n");
    EXPECT_EQ(live.feed("10%\r20%\r\x1b[2K\r"), "10%\n20%\n^[[2K");
    EXPECT_EQ(live.end(), "\n");
}

/// For any input: ESC appears only at the beginning of a colour sequence; no other control
/// characters are printed.
TEST(Printable, LetsNothingThroughButColours)
{
    std::mt19937 random(5);
    const std::string_view alphabet = "\x1b[]0123456789;:mAKJHPX\\\a\b\r\n\t\x9b\xc2\x9d ab\x7f";
    for (int round = 0; round < 5'000; ++round) {
        std::string bytes;
        for (std::size_t i = 0, size = random() % 60; i < size; ++i) {
            bytes += random() % 4 == 0 ? static_cast<char>(random())
                                       : alphabet[random() % alphabet.size()];
        }
        std::string text = printable(bytes, round % 2 == 0 ? Lines::whole : Lines::live);
        for (std::size_t at = 0; (at = text.find("\r\x1b[K")) != std::string::npos;) {
            text.erase(at, 4);
        }
        for (std::size_t i = 0; i < text.size(); ++i) {
            const auto byte = static_cast<unsigned char>(text[i]);
            if (byte == 0x1b) {
                ASSERT_EQ(text.substr(i + 1, 1), "[") << round;
                const std::size_t end = text.find_first_not_of("0123456789;:", i + 2);
                ASSERT_TRUE(end != std::string::npos && text[end] == 'm') << round;
            } else {
                ASSERT_TRUE((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t')
                    << round;
            }
        }
    }
}

} // namespace
} // namespace gpuq::cli
