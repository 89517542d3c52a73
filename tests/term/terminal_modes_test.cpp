// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/terminal_modes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuq {
namespace {

TEST(TerminalModes, OfPlainOutputAreTheUsualOnes)
{
    TerminalModes modes;
    modes.feed("a "
               "line\r\n\x1b[1;31mred\x1b[m\x1b[2K\x1b]0;title\x07\x1b[22m\x1b[?25$p\x1b[6n\x1b]11;"
               "?\x07\x1b"
               "7\x1b"
               "8");
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

struct Case {
    const char* name;
    std::string written, set, undo;
};

/// All modes that a program can leave set: the program's output, the sequence that sets the modes
/// on a terminal attached later, and the sequence that resets them.
const std::vector<Case>& cases()
{
    static const std::vector<Case> k_cases = {
        {"kitty keyboard, pushed", "\x1b[>1u", "\x1b[>1u", "\x1b[<u"},
        {"kitty keyboard, pushed thrice", "\x1b[>1u\x1b[>5u\x1b[>31u\x1b[<u\x1b[>8u",
         "\x1b[>1u\x1b[>5u\x1b[>8u", "\x1b[<3u"},
        {"kitty keyboard, set", "\x1b[=5u\x1b[=2;2u\x1b[=1;3u", "\x1b[=6u", "\x1b[=0u"},
        {"kitty keyboard, set and pushed", "\x1b[=1u\x1b[>3u", "\x1b[=1u\x1b[>3u",
         "\x1b[<u\x1b[=0u"},
        {"kitty keyboard on both screens", "\x1b[>1u\x1b[?1049h\x1b[>15u",
         "\x1b[>1u\x1b[?1049h\x1b[>15u", "\x1b[<u\x1b[?1049l\x1b[<u"},
        {"modifyOtherKeys", "\x1b[>4;1m", "\x1b[>4;1m", "\x1b[>4m"},
        {"modifyOtherKeys 2 and its format", "\x1b[>4;2m\x1b[>4;1f", "\x1b[>4;1f\x1b[>4;2m",
         "\x1b[>4f\x1b[>4m"},
        {"modifyCursorKeys", "\x1b[>1;3m", "\x1b[>1;3m", "\x1b[>1m"},
        {"win32-input-mode", "\x1b[?9001h", "\x1b[?9001h", "\x1b[?9001l"},
        {"line drawing", "\x1b(0", "\x1b(0", "\x1b(B"},
        {"line drawing by shift", "\x1b)0\x0e", "\x1b)0\x0e", "\x1b)B\x0f"},
        {"shifted to G2", "\x1bn", "\x1bn", "\x0f"},
        {"no UTF-8", "\x1b%@", "\x1b%@", "\x1b%G"},
        {"8-bit controls", "\x1b G", "\x1b G", "\x1b F"},
        {"mouse", "\x1b[?9h\x1b[?1000;1002;1003;1005;1006;1015;1016h",
         "\x1b[?9h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1005h\x1b[?1006h\x1b[?1015h\x1b[?1016h",
         "\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l"},
        {"focus, scrolling keys", "\x1b[?1004h\x1b[?1007h", "\x1b[?1004h\x1b[?1007h",
         "\x1b[?1004l\x1b[?1007l"},
        {"origin, no wrap, reverse", "\x1b[?6h\x1b[?7l\x1b[?5h", "\x1b[?5h\x1b[?6h\x1b[?7l",
         "\x1b[?5l\x1b[?6l\x1b[?7h"},
        {"insert, new line, keyboard locked, echo", "\x1b[4h\x1b[20h\x1b[2h\x1b[12l",
         "\x1b[2h\x1b[4h\x1b[12l\x1b[20h", "\x1b[2l\x1b[4l\x1b[12h\x1b[20l"},
        {"scroll region", "\x1b[2;20r",
         "\x1b"
         "7\x1b[2;20r\x1b"
         "8",
         "\x1b"
         "7\x1b[r\x1b"
         "8"},
        {"left and right margins", "\x1b[?69h\x1b[5;60s",
         "\x1b[?69h\x1b"
         "7\x1b[5;60s\x1b"
         "8",
         "\x1b[?69l"},
        {"keypad", "\x1b=", "\x1b=", "\x1b>"},
        {"cursor", "\x1b[5 q\x1b[?25l\x1b[?12h", "\x1b[?12h\x1b[?25l\x1b[5 q",
         "\x1b[?12l\x1b[?25h\x1b[0 q"},
        {"attributes", "\x1b[1;31m\x1b[48;5;17;4:3;7m\x1b[22;27m\x1b[58:2::1:2:3m",
         "\x1b[4:3;31;48;5;17;58:2::1:2:3m", "\x1b[m"},
        {"titles", "\x1b[22;0;0t\x1b[22t\x1b[22;2t\x1b[23;2t", "\x1b[22;0t\x1b[22;0t",
         "\x1b[23;0t\x1b[23;0t"},
        {"synchronised output", "\x1b[?2026h", "", "\x1b[?2026l"},
        {"palette", "\x1b]4;1;rgb:aa/bb/cc;200;#123456\x1b\\\x1b]4;7;red\x07\x1b]104;7\x07",
         "\x1b]4;1;rgb:aa/bb/cc\x07\x1b]4;200;#123456\x07", "\x1b]104;1;200\x07"},
        {"colours", "\x1b]10;white\x07\x1b]11;#000;red\x07\x1b]110\x07",
         "\x1b]11;#000\x07\x1b]12;red\x07", "\x1b]111\x07\x1b]112\x07"},
        {"printer", "\x1b[5i", "", "\x1b[4i"},
        {"link, progress", "\x1b]8;;http://x\x07\x1b]9;4;1;50\x07", "",
         "\x1b]8;;\x07\x1b]9;4;0\x07"},
        {"reports of colours and size", "\x1b[?2031h\x1b[?2048h", "\x1b[?2031h\x1b[?2048h",
         "\x1b[?2031l\x1b[?2048l"},
    };
    return k_cases;
}

TEST(TerminalModes, OfEveryKindAreSetAndUndone)
{
    for (const Case& each : cases()) {
        SCOPED_TRACE(each.name);
        TerminalModes modes;
        modes.feed(each.written);
        EXPECT_EQ(modes.to_set(), each.set);
        EXPECT_EQ(modes.to_undo(), each.undo);
        TerminalModes later;
        later.feed(modes.to_set());
        EXPECT_EQ(later.to_set(), modes.to_set());
        modes.feed(modes.to_undo());
        EXPECT_EQ(modes.to_set(), "");
        EXPECT_EQ(modes.to_undo(), "");
        TerminalModes in_pieces;
        for (const char c : each.written) {
            in_pieces.feed({&c, 1});
        }
        EXPECT_EQ(in_pieces.to_undo(), each.undo);
        in_pieces.feed("\x1b"
                       "c");
        EXPECT_EQ(in_pieces.to_undo(), "");
    }
}

TEST(TerminalModes, AllAtOnceAreSetAndUndone)
{
    TerminalModes modes, later;
    for (const Case& each : cases()) {
        modes.feed(each.written);
    }
    later.feed(modes.to_set());
    EXPECT_EQ(later.to_set(), modes.to_set());
    later.feed(later.to_undo());
    EXPECT_EQ(later.to_undo(), "");
}

TEST(TerminalModes, OfKeysAreOffWhileALineIsRead)
{
    TerminalModes modes;
    modes.feed("\x1b[?1049h\x1b[>31u\x1b[>4;2m\x1b[?1h\x1b[?1004h\x1b[?1006h\x1b[?2004h\x1b=");
    EXPECT_TRUE(modes.encodes_keys());
    EXPECT_EQ(modes.to_plain_keys(), "\x1b[?1l\x1b[?1004l\x1b[?2004l\x1b>\x1b[>4m\x1b[=0u");
    EXPECT_EQ(modes.to_program_keys(), "\x1b[?1h\x1b[?1004h\x1b[?2004h\x1b=\x1b[>4;2m\x1b[=31u");
    TerminalModes meanwhile = modes;
    meanwhile.feed(modes.to_plain_keys());
    EXPECT_FALSE(meanwhile.encodes_keys());
    meanwhile.feed(modes.to_program_keys());
    EXPECT_EQ(meanwhile.to_set(), modes.to_set());
    EXPECT_EQ(TerminalModes().to_plain_keys(), "");
}

TEST(TerminalModes, KeepNothingThatIsNoColour)
{
    TerminalModes modes;
    modes.feed("\x1b]11;\x9b"
               "31m\x07\x1b]4;1;a\nb\x07\x1b]4;300;red\x07\x1b]12;" +
               std::string(100, 'x') + "\x07");
    EXPECT_EQ(modes.to_set(), "");
    modes.feed("\x1b]4" + std::string(1 << 20, ';') + "\x07\x1b]10;red\x07");
    EXPECT_EQ(modes.to_undo(), "\x1b]110\x07");
    for (int i = 0; i < 1000; ++i) {
        modes.feed("\x1b[>31u\x1b[22;0t\x1b(\x1b(!!!!!!0");
    }
    EXPECT_LT(modes.to_set().size() + modes.to_undo().size(), 2000U);
}

TEST(TerminalModes, AreUndoneByASoftReset)
{
    TerminalModes modes;
    modes.feed("\x1b(0\x0e\x1b[4h\x1b[?6h\x1b[?7l\x1b[?25l\x1b[2;5r\x1b[31m\x1b=\x1b[?1h\x1b[!p");
    EXPECT_EQ(modes.to_undo(), "");
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
