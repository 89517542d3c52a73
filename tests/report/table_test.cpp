// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/table.h"

#include <gtest/gtest.h>

namespace gpuq::report {
namespace {

const Table k_runs = {
    {{"job", "JOB", Column::Align::right},
     {.name = "name", .title = "NAME", .shrink = Column::Shrink::yes, .cut = Column::Cut::middle},
     {"state", "STATE"}},
    {{"7", "train.py", {"running", Cell::Tone::good}},
     {"1042", "最終-evaluation", "waiting"},
     {"1043", "a\nb\033[2J", {"failed", Cell::Tone::bad}}},
};

TEST(Table, AlignsByCells)
{
    EXPECT_EQ(to_text(k_runs, {}), " JOB  NAME             STATE\n"
                                   "   7  train.py         running\n"
                                   "1042  最終-evaluation  waiting\n"
                                   "1043  a^Jb^[[2J        failed\n");
}

TEST(Table, CutsOnlyWhatMayShrink)
{
    EXPECT_EQ(to_text(k_runs, {.width = 24}), " JOB  NAME       STATE\n"
                                              "   7  train.py   running\n"
                                              "1042  最終…tion  waiting\n"
                                              "1043  a^Jb^[[2J  failed\n");
    // Below that width, lines exceed the terminal: an ID is never truncated.
    EXPECT_EQ(to_text(k_runs, {.header = false, .width = 1}), "   7  tra…py  running\n"
                                                              "1042  最…on   waiting\n"
                                                              "1043  a^J…2J  failed\n");
}

/// Runs of a series have names that differ only at their ends.
TEST(Table, CutsNamesInTheMiddle)
{
    Table table{{{.name = "sweep",
                  .title = "SWEEP",
                  .shrink = Column::Shrink::yes,
                  .cut = Column::Cut::middle}},
                {{"resnet50-imagenet-seed1"}, {"resnet50-imagenet-seed2"}, {"größe 最終-最終"}}};
    EXPECT_EQ(to_text(table, {.header = false, .width = 12}), "resnet…seed1\n"
                                                              "resnet…seed2\n"
                                                              "größe …-最終\n");
    table.rows[0][0] = "最終最終最終最終";
    EXPECT_EQ(to_text(table, {.header = false, .width = 12}).substr(0, 19), "最終最…最終\n");
}

/// A less important column is dropped before a name becomes unreadable.
TEST(Table, DropsColumnsBeforeOthersAreCutTooFar)
{
    const Table table{
        {{.name = "name", .title = "NAME", .shrink = Column::Shrink::yes, .least = 12},
         {.name = "queue", .title = "QUEUE", .drop = 1},
         {.name = "state", .title = "STATE"}},
        {{"resnet50-imagenet-seed1", "calibration", "running"}}};
    EXPECT_EQ(to_text(table, {.header = false, .width = 34}),
              "resnet50-im…  calibration  running\n");
    EXPECT_EQ(to_text(table, {.header = false, .width = 33}), "resnet50-imagenet-seed1  running\n");
    EXPECT_EQ(to_text(table, {.header = false, .width = 20}), "resnet50-i…  running\n");
    EXPECT_EQ(to_text(table, {.header = false, .width = 16}), "resnet…  running\n") << "the rest";
}

TEST(Table, LeavesTheHeaderOutWhenAsked)
{
    EXPECT_EQ(to_text({{{"a", "A"}}, {{"x"}}}, {.header = false}), "x\n");
    EXPECT_EQ(to_text({{{"a", "A"}}, {}}, {}), "A\n");
    EXPECT_EQ(to_text({{{"a", "A"}}, {}}, {.header = false}), "");
}

TEST(Table, HasNoBlanksAtTheEndOfALine)
{
    EXPECT_EQ(to_text({{{"a", "A"}, {"b", "B"}, {"c", "C"}}, {{"1", "", ""}, {"", "2", ""}}}, {}),
              "A  B  C\n1\n   2\n");
}

TEST(Table, ColoursOnlyWhenAsked)
{
    EXPECT_EQ(to_text({{{"a", "A"}, {"b", "B"}}, {{{"x", Cell::Tone::bad}, "y"}}}, {.color = true}),
              "\033[1mA\033[0m  \033[1mB\033[0m\n\033[31mx\033[0m  y\n");
}

TEST(Table, HasNoYellowOnALightBackground)
{
    EXPECT_TRUE(is_light("0;15"));
    EXPECT_TRUE(is_light("0;default;7"));
    for (const char* dark : {"", "15", "15;0", "15;8", "0;", "0;115"}) {
        EXPECT_FALSE(is_light(dark)) << dark;
    }
    const Table table = {{{"a", "A"}, {"b", "B"}},
                         {{{"x", Cell::Tone::warning}, {"y", Cell::Tone::good}}}};
    EXPECT_EQ(to_text(table, {.header = false, .color = true}),
              "\033[33mx\033[0m  \033[32my\033[0m\n");
    EXPECT_EQ(to_text(table, {.header = false, .color = true, .light = true}),
              "\033[1mx\033[0m  \033[32my\033[0m\n");
}

/// Columns marked `first` are truncated before more important ones.
TEST(Table, CutsTheLessImportantFirst)
{
    const Table table = {{{"state", "STATE", {}, Column::Shrink::yes},
                          {"queue", "QUEUE", {}, Column::Shrink::first}},
                         {{"waiting: others are before you", "calibration,patient"}}};
    EXPECT_EQ(to_text(table, {.header = false, .width = 44}),
              "waiting: others are before you  calibration…\n");
    EXPECT_EQ(to_text(table, {.header = false, .width = 40}),
              "waiting: others are before…  calibratio…\n");
}

TEST(Columns, AreChosenAndOrderedByName)
{
    EXPECT_EQ(to_text(*only(k_runs, "state,job"), {}), "STATE     JOB\n"
                                                       "running     7\n"
                                                       "waiting  1042\n"
                                                       "failed   1043\n");
    EXPECT_EQ(to_text(*only(k_runs, ""), {}), to_text(k_runs, {}));
}

TEST(Columns, AreDroppedInTheirOrderWhenNothingElseHelps)
{
    Table table{{{"id", "ID"},
                 {.name = "name",
                  .title = "NAME",
                  .shrink = Column::Shrink::yes,
                  .cut = Column::Cut::middle},
                 {"queue", "QUEUE", Column::Align::left, Column::Shrink::no, 2},
                 {"exit", "EXIT", Column::Align::left, Column::Shrink::no, 1}},
                {{"1234567", "a-long-name", "gpu", "0"}}};
    EXPECT_EQ(to_text(table, {.header = false, .width = 40}), "1234567  a-long-name  gpu  0\n");
    EXPECT_EQ(to_text(table, {.header = false, .width = 24}), "1234567  a-l…ame  gpu  0\n");
    EXPECT_EQ(to_text(table, {.width = 22}), "ID       NAME     EXIT\n"
                                             "1234567  a-l…ame  0\n");
    EXPECT_EQ(to_text(table, {.width = 16}), "ID       NAME\n1234567  a-l…ame\n");
    EXPECT_EQ(to_text(table, {.width = 3}), "ID       NAME\n1234567  a-l…me\n");
    // Columns requested by name are kept.
    EXPECT_EQ(to_text(*only(table, "id,queue"), {.width = 3}), "ID       QUEUE\n1234567  gpu\n");
}

/// Two runs of a comparison may have the same job id.
TEST(Columns, OfOneNameKeepTheirValues)
{
    const Table table{{{"id", "ID"}, {"12", "12"}, {"12", "12"}}, {{"loss", "1", "2"}}};
    EXPECT_EQ(to_text(*only(table, ""), {}), to_text(table, {}));
}

TEST(Columns, MayBeThereOnlyForThoseWhoAsk)
{
    Table table{
        {{"id", "ID"},
         {"key", "KEY", Column::Align::left, Column::Shrink::no, 0, Column::Show::on_request}},
        {{"1", "k"}}};
    EXPECT_EQ(to_text(*only(table, ""), {}), "ID\n1\n");
    EXPECT_EQ(to_text(*only(table, "key,id"), {}), "KEY  ID\nk    1\n");
}

TEST(Columns, NameThoseThatExistWhenOneDoesNot)
{
    for (const char* names : {"job,nmae", "nmae"}) {
        EXPECT_EQ(
            only(k_runs, names).error(),
            fail(Error::Kind::usage, "--columns: no column 'nmae'; there are: job, name, state"));
    }
}

} // namespace
} // namespace gpuq::report
