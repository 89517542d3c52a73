// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/theme.h"

#include <gtest/gtest.h>

namespace gpuq::tui {
namespace {

constexpr Theme k_gradients{.gradients = true};

Canvas drawn(std::string_view text)
{
    Canvas canvas(1, 20);
    canvas.put(0, 0, text);
    return canvas;
}

Canvas shaded(std::string_view text, const Theme& theme)
{
    Canvas canvas = drawn(text);
    shade(canvas, {0, 0, 1, 20}, theme);
    return canvas;
}

std::optional<std::uint32_t> colour_at(const Canvas& canvas, int column)
{
    return canvas.at(0, column).style.fg;
}

TEST(Heat, IsOneOfThreeColoursOrAGradient)
{
    EXPECT_EQ(heat(0.05, {}).fg, k_blue);
    EXPECT_EQ(heat(0.5, {}).fg, k_green);
    EXPECT_EQ(heat(2, {}).fg, k_yellow);
    EXPECT_NE(heat(0.5, k_gradients).fg, heat(0.55, k_gradients).fg);
    EXPECT_EQ(heat(2, k_gradients).fg, heat(1, k_gradients).fg);
    EXPECT_EQ(heat(0, k_gradients).fg, k_rgb | 0x5b6c8aU);
    EXPECT_EQ(heat(0, {.gradients = true, .light = true}).fg, k_rgb | 0x44526bU);
}

TEST(Shade, ColoursABarByPlaceAndLevelsByHeight)
{
    const Canvas canvas = shaded("a ████░ ▁▄█", k_gradients);
    EXPECT_EQ(canvas.text(), drawn("a ████░ ▁▄█").text());
    EXPECT_EQ(colour_at(canvas, 0), std::nullopt);
    EXPECT_EQ(colour_at(canvas, 2), heat(0.1, k_gradients).fg);
    EXPECT_EQ(colour_at(canvas, 5), heat(0.7, k_gradients).fg);
    EXPECT_EQ(colour_at(canvas, 6), std::nullopt) << "empty";
    EXPECT_EQ(colour_at(canvas, 8), heat(0, k_gradients).fg);
    EXPECT_EQ(colour_at(canvas, 10), heat(1, k_gradients).fg);
}

TEST(Shade, TakesASparklineForNoBar)
{
    const Canvas canvas = shaded("▁███ ██", k_gradients);
    for (const int column : {1, 2, 3, 5, 6}) {
        EXPECT_EQ(colour_at(canvas, column), heat(1, k_gradients).fg) << column;
    }
}

TEST(Shade, LeavesSelectedCellsAndOtherThemesAlone)
{
    EXPECT_EQ(shaded("████░ ▁▄█", {}), drawn("████░ ▁▄█"));
    Canvas canvas = drawn("████░");
    canvas.tint(0, 0, 20, marked());
    const Canvas before = canvas;
    shade(canvas, {0, 0, 1, 20}, k_gradients);
    EXPECT_EQ(canvas, before);
}

TEST(ForLight, KeepsColoursOfGradients)
{
    Style style;
    style.fg = k_rgb | 0x44526bU; // its last digits are those of yellow
    EXPECT_EQ(for_light(style), style);
    EXPECT_EQ(for_light(coloured(k_yellow)), bold());
}

} // namespace
} // namespace gpuq::tui
