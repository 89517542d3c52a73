// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/view.h"

#include "tui/app.h"
#include "tui/update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gpuq::tui {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

Picture picture(int runs)
{
    Picture made;
    made.cluster = "centre";
    made.answer = "no: 8 in use; the next: 1 k80 by 16:40 at the latest";
    made.slurm_at = Time(std::chrono::seconds(1'795'000'000));
    made.gpus.columns = {{"model", "GPU"},
                         {"free", "FREE", report::Column::Align::right},
                         {"mine", "MINE", report::Column::Align::right}};
    made.gpus.rows = {{"k80", "0", "2"}, {"a100", "?", "0"}};
    made.runs.columns = {{"id", "ID", report::Column::Align::right},
                         {"name", "NAME", report::Column::Align::left, report::Column::Shrink::yes},
                         {"state", "STATE"}};
    for (int i = 0; i < runs; ++i) {
        RunRow row;
        row.key = std::to_string(i);
        row.id = std::to_string(4700 + i);
        row.name = "train";
        row.part = 0.25;
        row.facts = {"runs on n0", "python3 train.py  (in /home/ada)"};
        made.rows.push_back(row);
        made.runs.rows.push_back({row.id, row.name, {"running", report::Cell::Tone::good}});
    }
    return made;
}

Model model(int rows, int columns, int runs)
{
    Model made;
    made.ascii = true;
    made.now = Time(std::chrono::seconds(1'795'000'012));
    update(made, Resized{rows, columns});
    update(made, PictureRead{picture(runs)});
    update(made, DetailRead{{"0", {"step 4 of 8"}, {{"loss", "", {4.0, 2.0, 1.0, 0.5}}}}});
    return made;
}

std::string body(Model& made) // without the clock, which shows local time
{
    std::string text = view(made).text();
    return text.substr(text.find('\n') + 1);
}

TEST(View, Is80By24ByDesign)
{
    Model m = model(24, 80, 3);
    EXPECT_THAT(view(m).text(), HasSubstr("Slurm 12 s ago"));
    EXPECT_EQ(body(m),
              "no: 8 in use; the next: 1 k80 by 16:40 at the latest\n"
              "GPU   FREE  MINE\n"
              "k80      0     2\n"
              "a100     ?     0\n"
              "\n"
              "  ID  NAME   STATE\n"
              "4700  train  running\n"
              "4701  train  running\n"
              "4702  train  running\n"
              "\n"
              "\n"
              "run 4700 (train)\n"
              "[##########..............................] 25 % of its time\n"
              "runs on n0\n"
              "step 4 of 8\n"
              "python3 train.py  (in /home/ada)\n"
              "loss 0.5  (0.5 to 4)\n"
              "********************\n"
              "\n"
              "                    ********************\n"
              "                                        ********************\n"
              "                                                            *******************\n"
              "Enter log  / filter  p pager  a attach  x stop  e extend  + new  ? help  q quit\n");
}

TEST(View, HowToLeaveIsTheLastKeyThatTheBottomLineLoses)
{
    for (int columns = 40; columns < 90; ++columns) {
        Model m = model(24, columns, 1);
        EXPECT_THAT(body(m), HasSubstr("? help  q quit\n")) << columns;
        update(m, Key{Special::enter, 0});
        EXPECT_THAT(body(m), HasSubstr("? help  Esc back  q quit\n")) << columns;
    }
    Model m = model(24, 65, 1);
    EXPECT_THAT(body(m),
                HasSubstr("Enter log  / filter  p pager  a attach  x stop  ? help  q quit"));
}

TEST(View, LongFactsHaveAllTheirWordsWhereThereIsRoom)
{
    Model m = model(24, 50, 1);
    m.picture->rows[0].facts = {"waits: no GPU is free; it is the next; Slurm expects it to start "
                                "2026-11-24 01:29, when run 3 ends",
                                std::string(60, 'x')};
    EXPECT_THAT(body(m), HasSubstr("waits: no GPU is free; it is the next; Slurm\n"
                                   "  expects it to start 2026-11-24 01:29, when run 3\n"
                                   "  ends\nstep 4 of 8\n" +
                                   std::string(50, 'x') + "\n  " + std::string(10, 'x') + "\n"));
    m.picture->rows[0].facts.resize(8, "another");
    const std::string full = body(m);
    EXPECT_THAT(full, HasSubstr("waits: no GPU is free; it is the next; Slurm expe…\n"));
    EXPECT_THAT(full, HasSubstr("another\nanother\n")) << "more facts before the rest of one";
}

TEST(View, SaysThatFactsAreCut)
{
    Model m = model(24, 80, 1);
    m.picture->rows[0].facts.resize(30, "another");
    m.picture->rows[0].facts.back() = "the last";
    const std::string text = body(m);
    EXPECT_THAT(text, HasSubstr("runs on n0\nstep 4 of 8\npython3"));
    EXPECT_THAT(text, HasSubstr("another\n+24 lines: v shows all, a taller terminal more\nloss"));
    EXPECT_THAT(text, testing::Not(HasSubstr("the last")));
}

/// A list mostly of ended runs does not push out the details of the selected, active run.
TEST(View, EndedRunsGiveWayToTheDetailsOfOneThatIsAlive)
{
    Model m = model(24, 80, 12);
    for (int i = 0; i < 12; ++i) {
        m.picture->rows[static_cast<std::size_t>(i)].active = i < 2;
    }
    m.detail->facts = {"progress: step 4 of 8", "finish: about 16:02", "GPU 0: 98 % busy"};
    const std::string alive = body(m);
    EXPECT_THAT(alive, HasSubstr("1-5 of 12"));
    EXPECT_THAT(alive, HasSubstr("GPU 0: 98 % busy\npython3 train.py  (in /home/ada)\nloss 0.5"));
    EXPECT_THAT(alive, testing::Not(HasSubstr("a taller terminal")));
    m.selected = "5";
    EXPECT_THAT(body(m), HasSubstr("1-8 of 12"));
}

TEST(View, SaysWhySlurmIsSilentAndKeepsWhatWasKnown)
{
    Model m = model(24, 80, 1);
    m.picture->trouble = "Slurm does not answer: Connection refused";
    EXPECT_THAT(view(m).text(), HasSubstr("Slurm does not answer"));
    EXPECT_THAT(view(m).text(), HasSubstr("4700"));
}

TEST(View, OneLineIsEnoughForTheMostImportant)
{
    Model m = model(1, 30, 1);
    EXPECT_EQ(view(m).text(), "4700: runs on n0\n");
}

TEST(View, SaysThatTheListGoesOn)
{
    Model m = model(24, 80, 30);
    EXPECT_THAT(body(m), ContainsRegex("  ID  NAME   STATE +1-8 of 30\n"));
    m.selected = "29";
    EXPECT_THAT(body(m), ContainsRegex("STATE +23-30 of 30\n"));
    Model narrow = model(24, 25, 30);
    EXPECT_THAT(body(narrow), ContainsRegex("STATE +\\+9\n"));
    Model full = model(24, 20, 30); // no space after the headings: a whole column is dropped
    EXPECT_THAT(body(full), HasSubstr("  ID  NAME        +9\n"));
    Model whole = model(24, 80, 3);
    EXPECT_THAT(body(whole), HasSubstr("STATE\n"));
}

TEST(View, TheSelectedRunIsAlwaysInView)
{
    for (const int rows : {2, 3, 4, 5, 9, 10, 12, 24, 50}) {
        Model m = model(rows, 60, 60);
        for (int i = 0; i < 60; ++i) {
            m.selected = std::to_string(i);
            ASSERT_THAT(view(m).text(), HasSubstr(std::to_string(4700 + i))) << rows;
        }
    }
}

/// From a single cell to a wall display, in every mode: nothing is drawn outside and nothing fails.
TEST(View, FitsEverySize)
{
    std::mt19937 random(3);
    for (int round = 0; round < 150; ++round) {
        const int rows = 1 + static_cast<int>(random() % 100);
        const int columns = 1 + static_cast<int>(random() % 300);
        Model m = model(rows, columns, static_cast<int>(random() % 30));
        m.ascii = random() % 2 == 0;
        for (const char32_t key : {U'x', U'?', U'/', U'e', U'l'}) {
            if (random() % 3 == 0) {
                update(m, Key{Special::none, key});
            }
        }
        const Canvas canvas = view(m);
        EXPECT_EQ(canvas.rows(), rows);
        EXPECT_EQ(canvas.columns(), columns);
        const std::string text = canvas.text();
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), rows);
    }
}

TEST(View, HostileNamesReachNoTerminal)
{
    Model m = model(24, 80, 1);
    m.picture->rows[0].name = "\x1b]0;owned\a";
    m.picture->rows[0].facts = {"\x9b"
                                "31m",
                                "\u202e"};
    m.picture->runs.rows[0][1] = {"\x1b[2J"};
    for (const char c : view(m).text()) {
        const auto byte = static_cast<unsigned char>(c);
        EXPECT_TRUE(byte >= 0x20 || byte == '\n');
        EXPECT_NE(byte, 0x9b);
    }
}

TEST(Once, PrintsAllRunsAndNoKeys)
{
    const std::string text = once(picture(60), Time(std::chrono::seconds(1'795'000'012)), 80);
    EXPECT_THAT(text, HasSubstr("4759"));
    EXPECT_THAT(text, testing::Not(HasSubstr("q quit")));
    EXPECT_EQ(text.substr(text.size() - 2).front() == '\n', false);
    EXPECT_THAT(once(picture(0), Time(std::chrono::seconds(1'795'000'012)), 80),
                testing::EndsWith("\nno runs, and none ended within a day\n"));
}

TEST(Once, IsAsWideAsNeedBeWhereThereIsNoTerminal)
{
    Picture wide = picture(2);
    wide.answer = std::string(150, 'a');
    wide.runs.rows[1][1] = {std::string(120, 'n')};
    const std::string text = once(wide, Time(std::chrono::seconds(1'795'000'012)), std::nullopt);
    EXPECT_THAT(text, HasSubstr(std::string(150, 'a') + "\n"));
    EXPECT_THAT(text, HasSubstr(std::string(120, 'n')));
}

TEST(View, BreaksWhatACommandSaysAtBlanks)
{
    Model made = model(24, 40, 1);
    update(made, Done{"would start train: 1 GPU in the first that takes it", false});
    const std::string text = view(made).text();
    EXPECT_NE(text.find("\nwould start train: 1 GPU in the first\n  that takes it\n"),
              std::string::npos)
        << text;
}

} // namespace
} // namespace gpuq::tui
