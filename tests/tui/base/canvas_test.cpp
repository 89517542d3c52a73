// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/canvas.h"

#include <gtest/gtest.h>

namespace gpuq::tui {
namespace {

TEST(Style, IsOneThatCanBeReadOnALightBackground)
{
    Style bold;
    bold.bold = true;
    for (const std::uint32_t colour : std::initializer_list<std::uint32_t>{0, 1, 2, 4, 5, 6}) {
        EXPECT_EQ(for_light({.fg = colour, .bg = {}}), (Style{.fg = colour, .bg = {}}));
    }
    for (const std::uint32_t yellow : std::initializer_list<std::uint32_t>{3, 11}) {
        EXPECT_EQ(for_light({.fg = yellow, .bg = {}}), bold);
    }
    EXPECT_EQ(for_light({.fg = 15, .bg = {}}), Style{});
    EXPECT_EQ(for_light({.fg = 3, .bg = 0}), (Style{.fg = 3, .bg = 0})) << "its own background";
}

TEST(Canvas, CutsWhatDoesNotFit)
{
    Canvas canvas(2, 5);
    EXPECT_EQ(canvas.put(0, 0, "abcdefg"), 5);
    EXPECT_EQ(canvas.put(1, 4, "最"), 4); // half a character is not drawn
    EXPECT_EQ(canvas.put(7, 0, "outside"), 0);
    EXPECT_EQ(canvas.text(), "abcde\n\n");
}

TEST(Canvas, CountsWideAndCombiningCharacters)
{
    Canvas canvas(1, 6);
    EXPECT_EQ(canvas.put(0, 0, "最e\u0301x"), 4);
    EXPECT_EQ(canvas.at(0, 0).glyph, "最");
    EXPECT_EQ(canvas.at(0, 1).glyph, "");
    EXPECT_EQ(canvas.at(0, 2).glyph, "e\u0301");
    EXPECT_EQ(canvas.text(), "最e\u0301x\n");
}

/// A toast may cover one half of a wide character.
TEST(Canvas, LeavesNoHalfOfAWideCharacter)
{
    Canvas canvas(1, 6);
    canvas.put(0, 0, "最最x");
    canvas.put(0, 1, "ab");
    EXPECT_EQ(canvas.text(), " ab x\n");
}

} // namespace
} // namespace gpuq::tui
