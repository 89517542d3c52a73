// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/canvas.h"
#include "tui/curve.h"

#include <gtest/gtest.h>

namespace gpuq::tui {
namespace {

TEST(Style, IsOneThatCanBeReadOnALightBackground)
{
    Style bold;
    bold.bold = true;
    for (const std::uint8_t colour : std::initializer_list<std::uint8_t>{0, 1, 2, 4, 5, 6}) {
        EXPECT_EQ(for_light({.fg = colour, .bg = {}}), (Style{.fg = colour, .bg = {}}));
    }
    for (const std::uint8_t yellow : std::initializer_list<std::uint8_t>{3, 11}) {
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

TEST(Curve, IsDrawnFromLowToHigh)
{
    Canvas canvas(3, 8);
    draw_curve(canvas, 0, 0, 3, 8, {"loss", "", {0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}}, true);
    EXPECT_EQ(canvas.text(), "loss 7 …\n    ****\n****\n");
}

TEST(Curve, LeavesAGapWhereNothingIsKnown)
{
    Canvas canvas(2, 20);
    draw_curve(canvas, 0, 0, 2, 20, {"busy", "%", {50.0, std::nullopt, 50.0}}, true);
    EXPECT_EQ(canvas.text(), "busy 50 %  (50 to 5…\n*******       ******\n");
}

/// A constant 100 % must not look like zero.
TEST(Curve, OfPercentIsDrawnFrom0To100)
{
    Canvas canvas(4, 20);
    draw_curve(canvas, 0, 0, 4, 20, {"busy", "%", {100.0, 100.0, 45.0}}, true);
    EXPECT_EQ(canvas.text(), "busy 45 %  (45 to 1…\n**************\n              ******\n\n");
}

TEST(Curve, SaysUnknownRatherThanNought)
{
    Canvas canvas(2, 20);
    draw_curve(canvas, 0, 0, 2, 20, {"busy", "%", {50.0, std::nullopt}}, true);
    EXPECT_EQ(canvas.text().substr(0, 12), "busy unknown");
}

TEST(Curve, IsBrailleWhereTheTerminalHasIt)
{
    Canvas canvas(2, 2);
    draw_curve(canvas, 0, 0, 2, 2, {"", "", {0.0, 3.0, 3.0, 0.0}}, false);
    EXPECT_EQ(canvas.text(), " …\n⡈⢁\n");
}

} // namespace
} // namespace gpuq::tui
