// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/chart.h"

#include "tui/run_panel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpuq::tui {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Theme k_ascii{true, false};

Curve curve(std::string title, std::string unit, const std::vector<std::optional<double>>& values)
{
    Curve made{std::move(title), std::move(unit), {}, true};
    for (std::size_t i = 0; i < values.size(); ++i) {
        made.dots.push_back({static_cast<double>(i), {}, values[i]});
    }
    return made;
}

std::string drawn(const Curve& curve, int rows, int columns, const Theme& theme = k_ascii)
{
    Canvas canvas(rows, columns);
    draw_curve(canvas, {0, 0, rows, columns}, curve, {}, theme);
    return canvas.text();
}

std::string charted(const std::vector<Curve>& curves, const ChartView& view, int rows = 9,
                    int columns = 40)
{
    Canvas canvas(rows, columns);
    std::vector<Plotted> all;
    for (const Curve& one : curves) {
        all.push_back({&one, one.title, {}});
    }
    draw_chart(canvas, {0, 0, rows, columns}, all, view, k_ascii);
    return canvas.text();
}

TEST(Curve, IsDrawnFromLowToHigh)
{
    EXPECT_EQ(drawn(curve("loss", "", {0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}), 3, 8),
              "loss 7 …\n    ****\n****\n");
}

TEST(Chart, ValuesHaveTheirUnits)
{
    const Curve use = curve("GPU use", "%", {20.0, 40.0, 60.0, 80.0});
    const Curve rate = curve("rate", "img/s", {100.0, 200.0, 300.0, 400.0});
    EXPECT_THAT(charted({use}, {}), HasSubstr("GPU use 80 %"));
    EXPECT_THAT(charted({use}, {}), HasSubstr("100+")) << "shares have an axis of 0 to 100";
    ChartView view;
    view.cursor = 0;
    EXPECT_THAT(charted({rate}, view), HasSubstr("rate 100 img/s"));
    EXPECT_THAT(charted({rate}, view), HasSubstr("step 0"));
}

/// Linear, all but the first value would be in the lowest row.
TEST(Curve, OfALossThatFallsFarIsLogarithmic)
{
    EXPECT_EQ(drawn(curve("loss", "", {1000.0, 100.0, 10.0, 1.0}), 5, 32),
              "loss 1  (1 to 1000, log)\n"
              "*****\n"
              "     ***********\n"
              "                **********\n"
              "                          ******\n");
    EXPECT_EQ(sparkline(curve("", "", {1000.0, 100.0, 10.0, 1.0}).dots, 4, {}, {}), "█▆▃▁");
    EXPECT_EQ(sparkline(curve("", "", {1.0, 10.0, 100.0, 1000.0}).dots, 4, {}, {}), "▁▁▁█");
    EXPECT_EQ(sparkline(curve("", "", {1000.0, 100.0, 10.0, 0.0}).dots, 4, {}, {}), "█▁▁▁");
}

TEST(Curve, LeavesAGapWhereNothingIsKnown)
{
    EXPECT_EQ(drawn(curve("busy", "%", {50.0, 50.0, std::nullopt, 50.0, 50.0}), 2, 21),
              "busy 50 %  (50 to 50)\n******         ******\n");
}

/// A constant 100 % must not look like zero.
TEST(Curve, OfPercentIsDrawnFrom0To100)
{
    EXPECT_EQ(drawn(curve("busy", "%", {100.0, 100.0, 100.0}), 4, 20),
              "busy 100 %  (100 to…\n********************\n\n\n");
}

TEST(Curve, SaysUnknownRatherThanNought)
{
    EXPECT_THAT(drawn(curve("busy", "%", {50.0, std::nullopt}), 2, 20), HasSubstr("busy unknown"));
}

TEST(Curve, IsBrailleWhereTheTerminalHasIt)
{
    EXPECT_EQ(drawn(curve("", "", {0.0, 3.0, 3.0, 0.0}), 2, 2, {}), " …\n⡜⢣\n");
}

TEST(Ticks, AreRoundAndWithinTheRange)
{
    EXPECT_THAT(ticks({0, 10}, 5), ElementsAre(0, 2, 4, 6, 8, 10));
    EXPECT_THAT(ticks({0.13, 0.47}, 4), ElementsAre(testing::DoubleEq(0.2), testing::DoubleEq(0.3),
                                                    testing::DoubleEq(0.4)));
    EXPECT_THAT(ticks({-1, 1}, 3), ElementsAre(-1, 0, 1));
    EXPECT_THAT(ticks({7, 7}, 4), ElementsAre(7));
    EXPECT_THAT(ticks({0.3, std::nextafter(0.3, 1)}, 4), ElementsAre(0.3)) << "a smoothed constant";
    EXPECT_THAT(ticks({-1e308, 1e308}, 4), ElementsAre(-1e308));
    EXPECT_FALSE(std::signbit(ticks({-0.4, 5}, 3).front())) << "no -0";
    for (const double span : {1e-9, 3.7, 8e12}) {
        for (int most = 1; most < 12; ++most) {
            const auto found = ticks({span / 3, span}, most);
            EXPECT_LE(found.size(), static_cast<std::size_t>(most) + 1) << span << ' ' << most;
        }
    }
}

TEST(ShortNumber, HasMoreDigitsWhereLabelsWouldBeEqual)
{
    EXPECT_THAT(short_numbers({0.0965, 0.09652, 0.09654}),
                ElementsAre("0.0965", "0.09652", "0.09654"));
    EXPECT_THAT(short_numbers({12000, 12010}), ElementsAre("12k", "12.01k"));
    EXPECT_THAT(short_numbers({0.1, 0.2}), ElementsAre("0.1", "0.2"));
    EXPECT_THAT(short_numbers({5, 5}), ElementsAre("5", "5"));
    EXPECT_THAT(short_numbers({}), IsEmpty());
}

TEST(ShortNumber, FitsAnAxis)
{
    EXPECT_EQ(short_number(0.48213), "0.482");
    EXPECT_EQ(short_number(1234), "1234");
    EXPECT_EQ(short_number(12000), "12k");
    EXPECT_EQ(short_number(2.5e6), "2.5M");
    EXPECT_EQ(short_number(3e-4), "0.0003");
    EXPECT_EQ(short_number(-0.0), "0");
}

TEST(Chart, HasALegendAxesAndTicks)
{
    EXPECT_EQ(charted({curve("loss", "", {4.0, 3.0, 2.0, 1.0, 0.0})}, {}),
              "* loss 0\n"
              "4+*****\n"
              " |     *******\n"
              " |            *****\n"
              "2+                 *******\n"
              " |                        *********\n"
              "0+                                 *****\n"
              " ++------------------+-----------------+\n"
              "  0                  2                 4\n");
}

TEST(Chart, AConstantWithRoundingIsFlat)
{
    const double more = std::nextafter(0.3, 1);
    EXPECT_EQ(charted({curve("lr", "", {0.3, more, 0.3, more})}, {}),
              charted({curve("lr", "", {0.3, 0.3, 0.3, 0.3})}, {}));
}

TEST(Chart, ValuesWithoutADifferenceAreDrawn)
{
    EXPECT_THAT(charted({curve("loss", "", {-1e308, 1e308})}, {}), testing::HasSubstr("loss"));
}

TEST(Chart, ReadsTheValuesAtTheCursor)
{
    ChartView view;
    view.cursor = 0.5;
    const std::string text = charted(
        {curve("loss", "", {4.0, 3.0, 2.0, 1.0, 0.0}), curve("acc", "", {0.0, 0.1, 0.2, 0.3, 0.4})},
        view);
    EXPECT_THAT(text, HasSubstr("step 2  * loss 2  * acc 0.2"));
    EXPECT_THAT(text, HasSubstr(":"));
}

TEST(Chart, ZoomsAndScalesToTheVisiblePart)
{
    ChartView view;
    view.from = 0.5;
    const std::string text = charted({curve("loss", "", {100.0, 3.0, 2.0, 1.0, 1.5})}, view);
    EXPECT_THAT(text, testing::Not(HasSubstr("100")));
    EXPECT_THAT(text, HasSubstr("2+"));
}

TEST(Chart, LeavesOutWhatALogarithmCanNotShow)
{
    ChartView view;
    view.logarithmic = true;
    const std::string text = charted({curve("loss", "", {100.0, 10.0, -1.0, 1.0, 0.1})}, view);
    EXPECT_THAT(text, HasSubstr(" 10+"));
    EXPECT_THAT(text, HasSubstr("0.1+"));
    EXPECT_THAT(charted({curve("loss", "", {-1.0, 0.0})}, view), HasSubstr("no values"));
}

TEST(Chart, SmoothsAsTensorBoardDoes)
{
    ChartView view;
    view.smoothing = 0.5;
    view.cursor = 1;
    // (0.25 * 4 + 0.5 * 0) / 0.75
    EXPECT_THAT(charted({curve("loss", "", {4.0, 0.0})}, view), HasSubstr("loss 1.33"));
}

TEST(Chart, OverTimeNeedsTimes)
{
    ChartView view;
    view.by_time = true;
    Curve timed = curve("loss", "", {4.0, 0.0});
    EXPECT_THAT(charted({timed}, view), HasSubstr("no values with times"));
    timed.dots[0].at = Time(std::chrono::seconds(1000));
    timed.dots[1].at = Time(std::chrono::seconds(1600));
    EXPECT_THAT(charted({timed}, view), HasSubstr("10 min"));
}

TEST(Chart, DrawsNothingOutsideItsArea)
{
    for (int rows = 1; rows < 14; ++rows) {
        for (int columns = 1; columns < 40; columns += 3) {
            Canvas canvas(20, 50);
            const Curve one = curve("größe", "%", {1.0, std::nullopt, NAN, INFINITY, 90.0});
            draw_chart(canvas, {3, 4, rows, columns}, {{&one, one.title, {}}}, {}, {});
            for (int row = 0; row < 20; ++row) {
                for (int column = 0; column < 50; ++column) {
                    if (!Rect{3, 4, rows, columns}.has(row, column)) {
                        ASSERT_EQ(canvas.at(row, column).glyph, " ")
                            << rows << 'x' << columns << ": " << row << ',' << column;
                    }
                }
            }
        }
    }
}

TEST(ChartsOf, TrainingAndValidationShareOne)
{
    std::vector<Curve> curves;
    for (const char* tag : {"train/loss", "val/loss", "acc", "Loss/test", "val_acc", "lr"}) {
        curves.push_back(curve(tag, "", {1.0}));
    }
    curves.push_back({"GPUs busy", "%", {}, false});
    EXPECT_THAT(charts_of(curves), ElementsAre(ElementsAre(0, 1, 3), ElementsAre(2, 4),
                                               ElementsAre(5), ElementsAre(6)));
}

} // namespace
} // namespace gpuq::tui
