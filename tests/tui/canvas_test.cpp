// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/canvas.h"
#include "tui/curve.h"

#include <gtest/gtest.h>

namespace gpuq::tui {
namespace {

TEST(Canvas, CutsWhatDoesNotFit)
{
    Canvas canvas(2, 5);
    EXPECT_EQ(canvas.put(0, 0, "abcdefg"), 5);
    EXPECT_EQ(canvas.put(1, 4, "最"), 4); // half a character is none
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
