// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/terminal_modes.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

TEST(TerminalModes, OfPlainOutputAreTheUsualOnes)
{
    TerminalModes modes;
    modes.feed("a line\r\n\x1b[1;31mred\x1b[m\x1b[2K\x1b]0;title\x07");
    EXPECT_EQ(modes.to_set(), "");
    EXPECT_EQ(modes.to_undo(), "");
    EXPECT_FALSE(modes.on_other_screen());
}

TEST(TerminalModes, OfAFullScreenProgramAreSetAndUndone)
{
    TerminalModes modes;
    modes.feed("\x1b[?1049h\x1b[?1h\x1b=\x1b[?25l\x1b[?2004h\x1b[>4;2m");
    EXPECT_TRUE(modes.on_other_screen());
    EXPECT_EQ(modes.to_set(), "\x1b[?1h\x1b[?25l\x1b[?1049h\x1b[?2004h\x1b=\x1b[>4;2m");
    EXPECT_EQ(modes.to_undo(), "\x1b[?1l\x1b[?25h\x1b[?1049l\x1b[?2004l\x1b>\x1b[>4m");
    TerminalModes after;
    after.feed(modes.to_set());
    EXPECT_EQ(after.to_undo(), modes.to_undo());
    modes.feed(modes.to_undo());
    EXPECT_EQ(modes.to_set(), "");
}

TEST(TerminalModes, ComeInAnyPieces)
{
    TerminalModes modes;
    for (const char c : std::string_view("x\x1b[?1000;1006hy\x1b[?9999h")) {
        modes.feed({&c, 1});
    }
    EXPECT_EQ(modes.to_set(), "\x1b[?1000h\x1b[?1006h");
}

TEST(TerminalModes, AreNotFoundInsideTitles)
{
    TerminalModes modes;
    modes.feed("\x1b]0;[?1049h\x1b\\\x1b]2;x\x07");
    EXPECT_EQ(modes.to_set(), "");
    modes.feed("\x1b]0;never ended\x1b[?1000h");
    EXPECT_EQ(modes.to_set(), "\x1b[?1000h");
}

TEST(TerminalModes, AreForgottenByAReset)
{
    TerminalModes modes;
    modes.feed("\x1b[?1049h\x1b[?25l\x1b=\x1b"
               "c");
    EXPECT_EQ(modes.to_set(), "");
}

TEST(TerminalModes, OfGarbageStayBounded)
{
    TerminalModes modes;
    modes.feed("\x1b[" + std::string(1 << 20, '1') + "\x1b[?99999999999999999999h");
    EXPECT_EQ(modes.to_set(), "");
}

} // namespace
} // namespace gpuq
