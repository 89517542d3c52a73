// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/html.h"

#include "report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gpuq::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Html, TextFromOutsideIsNothingButText)
{
    EXPECT_EQ(html_text("<b>\"R&D's\"\x1b[7m"), "&lt;b&gt;&quot;R&amp;D&#39;s&quot;^[[7m");
    EXPECT_EQ(html_text("\xe2\x80\xae"), "\\u{202e}");
    EXPECT_EQ(html_text("L\xc3\xa9na"), "L\xc3\xa9na");
}

TEST(Html, APageLoadsAndExecutesNothing)
{
    const std::string page = html_page("<1>", "<p>x</p>\n");
    EXPECT_THAT(page, HasSubstr("<title>&lt;1&gt;</title>"));
    EXPECT_THAT(page, HasSubstr("default-src 'none'"));
    EXPECT_THAT(page, HasSubstr("<body>\n<p>x</p>\n</body>"));
    EXPECT_THAT(page, Not(HasSubstr("http://")));
    EXPECT_THAT(page, Not(HasSubstr("refresh")));
    EXPECT_THAT(html_page("", "", std::chrono::minutes(5)),
                HasSubstr("<meta http-equiv=\"refresh\" content=\"300\">"));
    EXPECT_THAT(page, Not(HasSubstr("url(")));
}

TEST(Html, ATableKeepsRowsAndTheirParts)
{
    const Table table{{{"what", ""}, {"one", "<one>", Column::Align::right}},
                      {{"all", "1"}, {"  of them", "&"}}};
    const std::string text = html_table(table, "Figures");
    EXPECT_THAT(text, HasSubstr("<th scope=\"col\" class=\"right\">&lt;one&gt;</th>"));
    EXPECT_THAT(text, HasSubstr("<tr><th scope=\"row\">all</th><td class=\"right\">1</td></tr>"));
    EXPECT_THAT(text, HasSubstr("<tr class=\"part\"><th scope=\"row\">of them</th>"));
}

std::vector<std::string> labels(const Axis& axis)
{
    std::vector<std::string> texts;
    for (const Tick& tick : axis.ticks) {
        texts.push_back(tick.label);
    }
    return texts;
}

TEST(Chart, AnAxisEndsAtARoundNumber)
{
    EXPECT_THAT(labels(axis_from_zero("", 76)), ElementsAre("0", "20", "40", "60", "80"));
    EXPECT_THAT(labels(axis_from_zero("", 100)), ElementsAre("0", "20", "40", "60", "80", "100"));
    EXPECT_DOUBLE_EQ(axis_from_zero("", 1234).high, 1500);
    EXPECT_THAT(labels(axis_from_zero("", 0.9)), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1"));
    EXPECT_GT(axis_from_zero("", 0).high, 0);
}

Chart small_chart()
{
    Chart chart;
    chart.id = "small";
    chart.title = "<Small>";
    chart.description = "nothing & all";
    chart.x = axis_from_zero("x", 10);
    chart.y = axis_from_zero("y", 10);
    chart.curves = {{{0, 0}, {10, 10}}, {{0, 10}, {10, 100}}};
    return chart;
}

TEST(Chart, IsNamedForThoseWhoDoNotSeeIt)
{
    const std::string text = html_chart(small_chart());
    EXPECT_THAT(text, HasSubstr("role=\"img\" aria-labelledby=\"small-wide-title "
                                "small-wide-desc\""));
    EXPECT_THAT(text, HasSubstr("<title id=\"small-narrow-title\">&lt;Small&gt;</title>"));
    EXPECT_THAT(text, HasSubstr("<desc id=\"small-wide-desc\">nothing &amp; all</desc>"));
}

TEST(Chart, StaysWithinItsFrame)
{
    // The second curve exceeds the chart and is clipped to its upper edge.
    const std::string text = html_chart(small_chart());
    EXPECT_THAT(text, HasSubstr("class=\"curve curve0\" d=\"M26.0 276.0L842.0 28.0\""));
    EXPECT_THAT(text, HasSubstr("class=\"curve curve1\" d=\"M26.0 28.0L842.0 28.0\""));
}

TEST(Chart, AGapIsNotDrawnOver)
{
    Chart chart = small_chart();
    constexpr double k_gap = std::numeric_limits<double>::quiet_NaN();
    chart.lines = Chart::Lines::several;
    chart.curves = {{{0, k_gap}, {0, 0}, {10, 0}, {10, k_gap}, {0, 10}, {0, k_gap}}};
    // The last point is isolated and drawn as a dash.
    EXPECT_THAT(html_chart(chart), HasSubstr("class=\"line line0\" d=\"M26.0 276.0L842.0 276.0"
                                             "M25.0 28.0H27.0\""));
    chart.curves = {{{0, k_gap}}};
    EXPECT_THAT(html_chart(chart), HasSubstr("class=\"line line0\" d=\"\""));
}

TEST(Chart, HasAStyleForEveryCurve)
{
    Chart chart = small_chart();
    chart.lines = Chart::Lines::several;
    chart.curves.assign(k_most_lines, {{0, 0}, {10, 10}});
    const std::string page = html_page("x", html_chart(chart));
    for (std::size_t i = 0; i < k_most_lines; ++i) {
        EXPECT_THAT(page, HasSubstr("class=\"line line" + std::to_string(i) + "\""));
        EXPECT_THAT(page, HasSubstr("\n.line" + std::to_string(i) + " { stroke: "));
    }
}

TEST(Chart, StacksThePartsOfBlocks)
{
    Chart chart = small_chart();
    chart.curves.clear();
    // Adjacent blocks of the same height form one rectangle; an empty block is not drawn.
    chart.blocks = {{0, 2.5, {4, 2}}, {2.5, 5, {4, 2}}, {5, 7.5, {0, 10}}, {7.5, 10, {}}};
    const std::string text = html_chart(chart);
    EXPECT_THAT(text, HasSubstr("<path class=\"part0\" d=\"M26.0 276.0H434.0V176.8H26.0Z\"/>"));
    EXPECT_THAT(text, HasSubstr("<path class=\"part1\" d=\"M26.0 176.8H434.0V127.2H26.0Z"
                                "M434.0 276.0H638.0V28.0H434.0Z\"/>"));
    EXPECT_THAT(text, Not(HasSubstr("class=\"part2\"")));
}

TEST(Chart, NamesTheBoundariesThatHaveRoom)
{
    Chart chart = small_chart();
    chart.boundaries = {{0, "link 1"}, {5, "link <2>"}, {5.1, "link 3"}};
    chart.notches = {2.5};
    const std::string text = html_chart(chart);
    EXPECT_THAT(text, HasSubstr(">link 1<"));
    EXPECT_THAT(text, HasSubstr(">link &lt;2&gt;<"));
    EXPECT_THAT(text, Not(HasSubstr(">link 3<")));
    EXPECT_THAT(text, HasSubstr("<line class=\"notch\" x1=\"230.0\" y1=\"276.0\""));
}

TEST(Chart, AnAxisOfTimeCountsAsPeopleDo)
{
    EXPECT_THAT(labels(axis_of_time("", 45)), ElementsAre("0", "5 s", "10 s", "15 s", "20 s",
                                                          "25 s", "30 s", "35 s", "40 s", "45 s"));
    EXPECT_THAT(labels(axis_of_time("", 100)),
                ElementsAre("0", "15 s", "30 s", "45 s", "1:00", "1:15", "1:30"));
    EXPECT_THAT(labels(axis_of_time("", 2 * 3600)),
                ElementsAre("0", "15 min", "30 min", "45 min", "1:00 h", "1:15 h", "1:30 h",
                            "1:45 h", "2:00 h"));
    EXPECT_THAT(labels(axis_of_time("", 3 * 86400)),
                ElementsAre("0", "12 h", "24 h", "36 h", "2 d", "2 d 12 h", "3 d"));
    EXPECT_EQ(axis_of_time("", 0).high, 1);
    EXPECT_LE(axis_of_time("", 1e12).ticks.size(), 100U);
}

TEST(Chart, AnAxisLiesAroundItsValues)
{
    EXPECT_THAT(labels(axis_between("", -0.31, 0.42)),
                ElementsAre("-0.4", "-0.2", "0", "0.2", "0.4", "0.6"));
    const Axis flat = axis_between("", 3, 3);
    EXPECT_LT(flat.low, 3);
    EXPECT_GT(flat.high, 3);
    EXPECT_GT(axis_between("", 0, 0).high, 0);
    EXPECT_TRUE(std::isfinite(axis_between("", 1, INFINITY).high));
    EXPECT_TRUE(std::isfinite(axis_between("", -1e308, 1e308).high));
}

TEST(Chart, LeavesLabelsOutThatWouldTouch)
{
    Chart chart = small_chart();
    chart.x.ticks = {{0, "aaaaaaaaaa"}, {0.1, "bbbbbbbbbb"}, {10, "cccccccccc"}};
    const std::string text = html_chart(chart);
    EXPECT_THAT(text, HasSubstr(">aaaaaaaaaa<"));
    EXPECT_THAT(text, Not(HasSubstr(">bbbbbbbbbb<")));
    EXPECT_THAT(text, HasSubstr(">cccccccccc<"));
}

} // namespace
} // namespace gpuq::report
