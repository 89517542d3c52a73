// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/view.h"

#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/layout.h"
#include "tui/run_panel.h"
#include "tui/update.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gpuq::tui {
namespace {

using testing::HasSubstr;

Picture picture_of(int runs)
{
    Picture made;
    made.cluster = "centre";
    made.answer = "no: 8 in use; the next: 1 k80 by 16:40 at the latest";
    made.slurm_at = Time(std::chrono::seconds(1'795'000'000));
    made.holders = {{"0", "4700", "train", true, {}, {}}};
    GpuModel k80;
    k80.name = "k80";
    k80.total = 2;
    k80.free = 0;
    k80.mine = 1;
    k80.others = 1;
    k80.nodes = {{"n0", {{Gpu::State::mine, 0, 0.97, 0.5}, {Gpu::State::others, -1, {}, {}}}}};
    GpuModel a100;
    a100.name = "a100";
    a100.total = 1;
    a100.nodes = {{"n1", {{Gpu::State::unknown, -1, {}, {}}}}};
    made.gpus = {k80, a100};
    for (int i = 0; i < runs; ++i) {
        RunRow row;
        row.key = std::to_string(i);
        row.id = std::to_string(4700 + i);
        row.name = "train";
        row.state = "running";
        row.mark = RunMark::running;
        row.gpus = "1";
        row.active = true;
        row.part = 0.25;
        row.facts = {"runs on n0", "python3 train.py  (in /home/ada)"};
        made.runs.push_back(row);
    }
    return made;
}

Detail detail()
{
    Detail made;
    made.key = "0";
    made.facts = {"step 4 of 8"};
    made.curves = {{"loss", "", {{1, {}, 4.0}, {2, {}, 2.0}, {3, {}, 1.0}, {4, {}, 0.5}}, true}};
    made.progress = 0.5;
    made.loss = 0.5;
    made.gpus = {{"n0 GPU 0", "97 % busy", 0.97, 0.5}};
    made.events = {
        {Event::Kind::waiting, Time(std::chrono::seconds(1'795'000'000)),
         Time(std::chrono::seconds(1'795'000'004)), "job 4700 waiting"},
        {Event::Kind::checkpoint, Time(std::chrono::seconds(1'795'000'009)), {}, "epoch-1.pt"}};
    return made;
}

Model model(int rows, int columns, int runs)
{
    Model made;
    made.theme.ascii = true;
    made.now = Time(std::chrono::seconds(1'795'000'012));
    update(made, Resized{rows, columns});
    update(made, PictureRead{picture_of(runs)});
    update(made, DetailRead{detail()});
    return made;
}

std::string text_of_view(Model& made)
{
    return view(made).text();
}

TEST(View, Is80By24ByDesign)
{
    Model m = model(24, 80, 3);
    EXPECT_EQ(text_of_view(m),
              "gpuq centre  no: 8 in use; the next: 1 k80 by 16:40 at the late…  Slurm 12 s ago\n"
              "+- 1 GPUs: ? of 3 free --------------------------------------------------------+\n"
              "|k80 0 of 2 free   n0 470095 used                                              |\n"
              "|a100 ? of 1 free  n1 ?                                                        |\n"
              "+------------------------------------------------------------------------------+\n"
              "+= 2 Runs =====================================================================+\n"
              "|      ID  NAME   STATE    GPUS  PROGRESS     ENDS  LOSS                       |\n"
              "| >  4700  train  running     1  ###..  50 %  -     9410 0.5                   |\n"
              "| >  4701  train  running     1  #....  25 %  -                                |\n"
              "| >  4702  train  running     1  #....  25 %  -                                |\n"
              "+==============================================================================+\n"
              "+- 3 run 4700 (train)  Log Curves GPUs Facts Timeline -------------------------+\n"
              "|#########......... 50 % of its steps  #####............. 25 % of its time     |\n"
              "|runs on n0                                                                    |\n"
              "|step 4 of 8                                                                   |\n"
              "|python3 train.py  (in /home/ada)                                              |\n"
              "|loss 0.5  (0.5 to 4)                                                          |\n"
              "|*******                                                                       |\n"
              "|       ************                                                           |\n"
              "|                   *******************                                        |\n"
              "|                                      **************************              |\n"
              "|                                                                ************* |\n"
              "+------------------------------------------------------------------------------+\n"
              "Tab panel  Enter open  p pager  / filter  a attach  x stop  ? help  q quit\n");
}

TEST(View, HowToLeaveIsTheLastKeyThatTheBottomLineLoses)
{
    for (int columns = 40; columns < 90; ++columns) {
        Model m = model(24, columns, 1);
        EXPECT_THAT(text_of_view(m), HasSubstr("? help  q quit\n")) << columns;
        update(m, Key{Special::enter, 0});
        EXPECT_THAT(text_of_view(m), HasSubstr("Esc back  ")) << columns;
        EXPECT_THAT(text_of_view(m), HasSubstr("? help  q quit\n")) << columns;
    }
}

TEST(View, LongFactsHaveAllTheirWordsWhereThereIsRoom)
{
    Model m = model(40, 62, 1);
    m.picture.runs[0].facts = {"waits: no GPU is free; it is the next; Slurm expects it to start "
                               "2026-11-24 01:29, when run 3 ends",
                               std::string(70, 'x')};
    const std::string text = text_of_view(m);
    EXPECT_THAT(text, HasSubstr("waits: no GPU is free; it is the next; Slurm expects it to"));
    EXPECT_THAT(text, HasSubstr("|  start 2026-11-24 01:29, when run 3 ends"));
    EXPECT_THAT(text, HasSubstr("|  " + std::string(10, 'x')));
}

TEST(View, SaysThatFactsAreCut)
{
    Model m = model(24, 80, 1);
    m.picture.runs[0].facts.resize(30, "another");
    m.picture.runs[0].facts.back() = "the last";
    EXPECT_THAT(text_of_view(m), HasSubstr("more lines: 3 and j scroll, v shows all"));
    EXPECT_THAT(text_of_view(m), testing::Not(HasSubstr("the last")));
    update(m, Key{Special::none, U'3'});
    update(m, Key{Special::end, 0});
    EXPECT_THAT(text_of_view(m), HasSubstr("the last")) << "scrolled to";
    m.picture.runs[0].facts.resize(9);
    m.picture.runs[0].facts.back() = "the ninth";
    update(m, Key{Special::home, 0});
    EXPECT_THAT(text_of_view(m), HasSubstr("more lines: j scrolls, v shows all"));
    update(m, Key{Special::down, 0});
    EXPECT_THAT(text_of_view(m), HasSubstr("the ninth")) << "where the curve was";
}

TEST(View, AnEndOnAnotherDayLeavesRoomForTheName)
{
    Model m = model(24, 80, 2);
    const Time end = m.now + std::chrono::days{1};
    m.picture.runs[0].name = "pretrain-large-eu";
    m.picture.runs[0].ends = end;
    m.details.clear(); // or it is the end of the training that is shown
    EXPECT_THAT(text_of_view(m), HasSubstr(" " + short_clock_text(end, m.now) + " "));
    EXPECT_THAT(text_of_view(m), HasSubstr("pretrain-large-eu"));
}

TEST(View, ShowsTheProgressOfTheTrainingBesideItsTime)
{
    Model m = model(24, 80, 2);
    EXPECT_THAT(text_of_view(m), HasSubstr("##......... 50 % of its steps  ####"));
    EXPECT_THAT(text_of_view(m), HasSubstr("... 25 % of its time  "));
    update(m, Resized{24, 60});
    EXPECT_THAT(text_of_view(m), HasSubstr("... 50 % of its steps"));
    EXPECT_THAT(text_of_view(m), testing::Not(HasSubstr("of its time")));
    update(m, Key{Special::down, 0});
    EXPECT_THAT(text_of_view(m), HasSubstr("... 25 % of its time")) << "its steps are unknown";
}

TEST(View, CountsTheChartsThatAreNotShown)
{
    Model m = model(24, 80, 1);
    Detail found = detail();
    for (const char* name : {"acc", "lr", "epoch", "grad"}) {
        found.curves.push_back({name, "", found.curves.front().dots, true});
    }
    update(m, DetailRead{found});
    update(m, Key{Special::enter, 0});
    update(m, Key{Special::none, U']'});
    EXPECT_THAT(text_of_view(m), HasSubstr("+= charts 1-2 of 5 (j k) ="));
    update(m, Key{Special::end, 0});
    update(m, Key{Special::none, U'L'});
    EXPECT_THAT(text_of_view(m), HasSubstr("= chart 5 of 5 (j k), log"));
    update(m, Key{Special::home, 0});
    update(m, Key{Special::enter, 0});
    EXPECT_THAT(text_of_view(m), HasSubstr("= chart 1 of 5 (j k), log"));
    update(m, Resized{60, 200});
    update(m, Key{Special::enter, 0});
    EXPECT_THAT(text_of_view(m), testing::Not(HasSubstr("of 5")));
}

TEST(View, ShortensTheAnswerWhereItDoesNotFit)
{
    Model m = model(24, 80, 1);
    m.picture.short_answers = {std::string(60, 'x'), "no, next by 16:40; 3 jobs wait", "no"};
    EXPECT_THAT(text_of_view(m), HasSubstr("gpuq centre  no, next by 16:40; 3 jobs wait   "));
    update(m, Resized{24, 120});
    EXPECT_THAT(text_of_view(m), HasSubstr("gpuq centre  " + m.picture.answer));
    update(m, Resized{3, 40});
    EXPECT_THAT(text_of_view(m), testing::StartsWith("no, next by 16:40; 3 jobs wait"));
    update(m, Resized{3, 20});
    EXPECT_THAT(text_of_view(m), testing::StartsWith("no\n"));
    m.picture.trouble = "Slurm does not answer";
    update(m, Resized{3, 40});
    EXPECT_THAT(text_of_view(m), testing::StartsWith("Slurm does not answer"));
}

TEST(View, SaysWhySlurmIsSilentAndKeepsWhatWasKnown)
{
    Model m = model(24, 80, 1);
    m.picture.trouble = "Slurm does not answer: Connection refused";
    EXPECT_THAT(text_of_view(m), HasSubstr("Slurm does not answer"));
    EXPECT_THAT(text_of_view(m), HasSubstr("4700"));
}

TEST(View, OneLineIsEnoughForTheMostImportant)
{
    Model m = model(1, 30, 1);
    EXPECT_EQ(text_of_view(m), "4700: runs on n0\n");
}

TEST(View, SaysThatTheListGoesOn)
{
    Model m = model(24, 80, 30);
    EXPECT_THAT(text_of_view(m), HasSubstr("2 Runs: 1-6 of 30"));
    m.selected = "29";
    EXPECT_THAT(text_of_view(m), HasSubstr("2 Runs: 25-30 of 30"));
}

TEST(View, TheSelectedRunIsAlwaysInView)
{
    for (const int rows : {2, 3, 4, 5, 7, 9, 10, 12, 18, 24, 50}) {
        for (const int columns : {30, 60, 80, 200}) {
            Model m = model(rows, columns, 60);
            for (int i = 0; i < 60; ++i) {
                m.selected = std::to_string(i);
                ASSERT_THAT(text_of_view(m), HasSubstr(std::to_string(4700 + i)))
                    << rows << 'x' << columns;
            }
        }
    }
}

TEST(View, ASmallScreenHasThePanelThatIsInUse)
{
    Model m = model(10, 40, 3);
    EXPECT_THAT(text_of_view(m), HasSubstr("2 Runs"));
    EXPECT_THAT(text_of_view(m), testing::Not(HasSubstr("1 GPUs")));
    update(m, Key{Special::none, U'1'});
    EXPECT_THAT(text_of_view(m), HasSubstr("1 GPUs"));
    update(m, Key{Special::none, U'3'});
    EXPECT_THAT(text_of_view(m), HasSubstr("runs on n0"));
}

TEST(View, ASmallScreenHasTheAgeAndTheSelectedTab)
{
    Model m = model(10, 40, 3);
    EXPECT_THAT(text_of_view(m), testing::ContainsRegex("^gpuq centre  no: 8 in use; .*  12 s\n"));
    update(m, Key{Special::none, U'3'});
    EXPECT_THAT(text_of_view(m), HasSubstr("= 3 run 4700 (train)  [Facts] ="));
    const Rect panel = areas_of(m).run;
    EXPECT_EQ(tab_at(m, panel, panel.top, 27), Tab::facts);
    const Canvas canvas = view(m);
    EXPECT_TRUE(canvas.at(panel.top, 27).style.reverse);
    EXPECT_FALSE(canvas.at(panel.top, 10).style.reverse);
}

TEST(View, TheTabsOfARun)
{
    Model m = model(40, 100, 1);
    update(m, Key{Special::none, U'3'});
    const auto next = [&] {
        update(m, Key{Special::none, U']'});
        return text_of_view(m);
    };
    const std::string timeline = next();
    EXPECT_THAT(timeline, HasSubstr("waiting     ......"));
    EXPECT_THAT(timeline, HasSubstr("checkpoints "));
    EXPECT_THAT(timeline, HasSubstr("job 4700 waiting (4 s)"));
    EXPECT_THAT(next(), HasSubstr("nothing yet")) << "the log";
    EXPECT_THAT(next(), HasSubstr("* loss 0.5"));
    EXPECT_THAT(next(), HasSubstr("n0 GPU 0  #################."));
}

/// The space decides: a cell per GPU, a letter per GPU, numbers.
TEST(View, DrawsGpusAsWellAsTheyFit)
{
    Model m = model(24, 80, 1);
    GpuModel& group = m.picture.gpus[0];
    const GpuNode node = group.nodes[0];
    const auto with = [&](int nodes) {
        group.nodes.assign(static_cast<std::size_t>(nodes), node);
        group.total = 2 * nodes;
        group.mine = group.others = nodes;
        return text_of_view(m);
    };
    EXPECT_THAT(with(4), HasSubstr("n0 470095 used     n0 470095 used"));
    EXPECT_THAT(with(20), HasSubstr("n0 Mo  n0 Mo  n0 Mo"));
    EXPECT_THAT(with(20), HasSubstr("M mine  o others'"));
    EXPECT_THAT(with(2000), HasSubstr("k80 0 of 4000 free  mine 2000  others 2000  MMMM"));
    group.shares = "2 of 8 shards";
    EXPECT_THAT(with(2000), HasSubstr("k80 0 of 4000 free, 2 of 8 shards  mine 2000"));
}

TEST(View, WhatToTypeTheFirstTime)
{
    Model m = model(24, 80, 0);
    EXPECT_THAT(text_of_view(m), HasSubstr("gpuq run -t 2h train.py"));
    m.picture.gpus.clear();
    EXPECT_THAT(text_of_view(m), HasSubstr("this cluster has no GPUs that Slurm knows"));
    Model before;
    before.theme.ascii = true;
    EXPECT_THAT(text_of_view(before), HasSubstr("asking Slurm"));
    EXPECT_THAT(text_of_view(before), HasSubstr("reading your runs"));
}

/// From a single cell to a wall display, in every mode: nothing is drawn outside and nothing fails.
TEST(View, FitsEverySize)
{
    std::mt19937 random(3);
    for (int round = 0; round < 150; ++round) {
        const int rows = 1 + static_cast<int>(random() % 100);
        const int columns = 1 + static_cast<int>(random() % 300);
        Model m = model(rows, columns, static_cast<int>(random() % 30));
        m.theme.ascii = random() % 2 == 0;
        m.theme.gradients = random() % 2 == 0;
        for (const char32_t key :
             {U'1', U'x', U'?', U'/', U'3', U'e', U'l', U']', U']', U' ', U'c', U'b'}) {
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

/// A program that saves each epoch would fill the list.
TEST(View, TheTimelineCountsCheckpointsInARow)
{
    Model m = model(40, 100, 1);
    Detail found = detail();
    const auto checkpoint = [&](int number) {
        found.events.push_back({Event::Kind::checkpoint,
                                found.events.back().from + std::chrono::seconds(1),
                                {},
                                "saved epoch-" + std::to_string(number) + ".pt"});
    };
    for (int i = 2; i < 30; ++i) {
        checkpoint(i);
    }
    found.events.push_back({Event::Kind::notice, found.events.back().from, {}, "a warning"});
    checkpoint(30);
    checkpoint(31);
    update(m, DetailRead{found});
    update(m, Key{Special::none, U'3'});
    update(m, Key{Special::none, U']'});
    const std::string text = text_of_view(m);
    EXPECT_THAT(text, testing::AllOf(HasSubstr("epoch-31.pt"), HasSubstr("epoch-30.pt"),
                                     HasSubstr("epoch-29.pt"),
                                     HasSubstr("the first of 29 checkpoints in a row")));
    EXPECT_THAT(text, testing::Not(HasSubstr("epoch-28.pt")));
    EXPECT_THAT(text, HasSubstr("job 4700 waiting (4 s)")) << "what happened before";
}

TEST(View, TheAxisOfAShortTimelineHasSeconds)
{
    Model m = model(40, 100, 1);
    const Time begin = detail().events.front().from;
    update(m, Key{Special::none, U'3'});
    update(m, Key{Special::none, U']'});
    EXPECT_THAT(text_of_view(m),
                testing::ContainsRegex(fmt::format("  {} +{} ", moment_text(begin, m.now),
                                                   moment_text(m.now, m.now))));
    update(m, Tick{begin + std::chrono::minutes(10)});
    EXPECT_THAT(text_of_view(m),
                testing::ContainsRegex(
                    fmt::format("  {} +{} ", clock_text(begin, m.now), clock_text(m.now, m.now))));
}

TEST(View, ATabWithoutRoomForItsLinesShowsWhichTheyAre)
{
    Model m = model(24, 80, 5);
    Detail found = detail();
    for (int i = 0; i < 12; ++i) {
        found.events.push_back({Event::Kind::notice, found.events.back().from, {}, "a warning"});
    }
    update(m, DetailRead{found});
    update(m, Key{Special::none, U'3'});
    EXPECT_THAT(text_of_view(m), testing::Not(HasSubstr("(j k)"))) << "the facts";
    update(m, Key{Special::none, U']'});
    EXPECT_THAT(text_of_view(m), HasSubstr(" lines 1-8 of 19 (j k) "));
    update(m, Key{Special::none, U'j'});
    EXPECT_THAT(text_of_view(m), HasSubstr(" lines 2-9 of 19 (j k) "));
}

TEST(View, AComparisonWithoutRoomForNamesHasTheIds)
{
    Model m = model(24, 80, 2);
    Comparison compared;
    compared.keys = {"0", "1"};
    compared.names = {"4700 (resnet50-seed-1)", "4701 (resnet50-seed-2)"};
    compared.metrics = {{"loss", {detail().curves[0], detail().curves[0]}}};
    m.comparison = compared;
    EXPECT_THAT(text_of_view(m), HasSubstr("* 4701 (resnet50-seed-2) loss 0.5"));
    update(m, Resized{24, 60});
    EXPECT_THAT(text_of_view(m), HasSubstr("= Compare  * 4700  * 4701   ="));
    EXPECT_THAT(text_of_view(m), HasSubstr("* 4700 loss 0.5  * 4701 loss 0.5"));
}

TEST(View, AComparisonTellsOfChartsAndLinesBelow)
{
    Model m = model(24, 80, 2);
    Comparison compared;
    compared.keys = {"0", "1"};
    compared.names = {"4700", "4701"};
    compared.metrics = {{"loss", {detail().curves[0], detail().curves[0]}},
                        {"val_loss", {detail().curves[0], detail().curves[0]}}};
    report::Table table;
    table.columns = {{"setting", "SETTING"}, {"4700", "4700"}, {"4701", "4701"}};
    for (int i = 0; i < 14; ++i) {
        table.rows.push_back({fmt::format("--option-{}.", i), "0", "1"});
    }
    compared.tables = {table};
    m.comparison = compared;
    EXPECT_THAT(text_of_view(m), HasSubstr("= chart 1 of 2 (j k), lines 1-10 of 15 (Ctrl-D) ="));
    EXPECT_THAT(text_of_view(m), testing::Not(HasSubstr("--option-13.")));
    update(m, Key{Special::none, U'\x04'});
    EXPECT_THAT(text_of_view(m), HasSubstr(" lines 6-15 of 15 (Ctrl-D) "));
    EXPECT_THAT(text_of_view(m), HasSubstr("--option-13."));
    update(m, Key{Special::none, U'\x15'});
    EXPECT_THAT(text_of_view(m), HasSubstr(" lines 1-10 of 15 (Ctrl-D) ")) << "it stopped there";
    update(m, Key{Special::none, U'j'});
    EXPECT_THAT(text_of_view(m), HasSubstr(" chart 2 of 2 (j k), "));
    update(m, Resized{10, 40});
    EXPECT_THAT(text_of_view(m), HasSubstr("--option-4.")) << "too few rows for a chart";
    m.comparison->metrics.resize(1);
    m.comparison->tables[0].rows.resize(2);
    update(m, Resized{24, 80});
    EXPECT_THAT(text_of_view(m), testing::Not(testing::ContainsRegex("j k|Ctrl-D")));
}

TEST(View, AGpuWithoutMeasurementsHasTheReasonOnly)
{
    Model m = model(24, 80, 1);
    Detail found = detail();
    found.gpus = {{"n0 GPU 0", "unknown (" + std::string(90, 'x') + ")", {}, {}}};
    update(m, DetailRead{found});
    m.panels.tab = Tab::gpus;
    EXPECT_THAT(text_of_view(m), HasSubstr("|n0 GPU 0  unknown (xxx"));
    EXPECT_THAT(text_of_view(m), testing::Not(HasSubstr("???")));
    EXPECT_THAT(text_of_view(m), HasSubstr("x…|"));
}

TEST(View, ARunThatWasJustSubmitted)
{
    Model m = model(40, 100, 1);
    m.picture.runs[0].state = "submitting";
    m.picture.runs[0].facts = {"is being submitted"};
    m.details.clear();
    update(m, Key{Special::none, U'3'});
    EXPECT_THAT(text_of_view(m), HasSubstr("is being submitted"));
    const auto shows = [&](const char* text) {
        update(m, Key{Special::none, U']'});
        EXPECT_THAT(text_of_view(m), HasSubstr(text));
    };
    shows("reading its files"); // the timeline
    shows("nothing yet");
    shows("reading its files");
    shows("reading its files");
    Detail found;
    found.key = "0";
    update(m, DetailRead{found});
    shows("is being submitted");
    shows("nothing is recorded of it");
    shows("nothing yet");
    shows("no curves yet: gpuq reads them from the output");
    shows("no measurements of its GPUs");
}

/// Below a short list is room for the log; beside it for all columns of the list.
TEST(View, AWideScreenHasTheLogBelowTheList)
{
    Model m = model(60, 200, 3);
    ASSERT_TRUE(m.log) << "opened without a key";
    update(m, LogBytes{"0", Stream::out, "step 1\nstep 2\n", true, 0, ""});
    EXPECT_THAT(text_of_view(m), testing::AllOf(HasSubstr("QUEUE"), HasSubstr("TIME / LIMIT"),
                                                HasSubstr("GPU USE")));
    EXPECT_THAT(text_of_view(m), HasSubstr("+- stdout of run 4700 (train) -"));
    EXPECT_THAT(text_of_view(m), HasSubstr("|step 2  "));
    EXPECT_THAT(text_of_view(m), HasSubstr("job 4700 waiting (4 s)")) << "the timeline";
    const Areas areas = areas_of(m);
    EXPECT_EQ(inside(areas.runs).height, 4) << "no row is empty";
    EXPECT_EQ(areas.lower.bottom(), areas.run.bottom());
    update(m, Key{Special::none, U'3'});
    update(m, Key{Special::none, U'1'});
    EXPECT_EQ(areas_of(m).lower, areas.lower) << "independent of the focus";
    for (int i = 0; i < 3; ++i) { // to the log
        update(m, Key{Special::none, U'3'});
        update(m, Key{Special::none, U'['});
    }
    EXPECT_EQ(m.panels.tab, Tab::log);
    EXPECT_THAT(text_of_view(m), HasSubstr("+- Facts -"));
    update(m, Key{Special::none, U'F'});
    EXPECT_EQ(areas_of(m).lower.height, 0);
}

TEST(View, AWideScreenWithManyRunsHasMostlyTheirList)
{
    Model m = model(60, 200, 500);
    const Areas areas = areas_of(m);
    EXPECT_GT(areas.runs.height, 2 * areas.lower.height - 2);
    EXPECT_GE(areas.lower.height, 6);
    EXPECT_EQ(areas_of(model(20, 200, 500)).lower.height, 0) << "too few rows";
    EXPECT_EQ(areas_of(model(60, 200, 0)).lower.height, 0);
    EXPECT_EQ(areas_of(model(60, 149, 3)).lower.height, 0);
}

TEST(View, TheWheelScrollsTheLogBelowTheList)
{
    Model m = model(60, 200, 3);
    std::string text;
    for (int i = 0; i < 100; ++i) {
        text += "line " + std::to_string(i) + "\n";
    }
    update(m, LogBytes{"0", Stream::out, text, true, 0, ""});
    const Rect lower = areas_of(m).lower;
    const auto mouse = [&](Mouse::Action action) {
        update(m, Mouse{action, lower.top + 3, lower.left + 3});
    };
    mouse(Mouse::Action::wheel_up);
    EXPECT_THAT(text_of_view(m), testing::Not(HasSubstr("line 99 ")));
    EXPECT_THAT(text_of_view(m), HasSubstr("line 96 "));
    EXPECT_EQ(m.selected, "0");
    mouse(Mouse::Action::wheel_down);
    EXPECT_TRUE(m.log->follow) << "at the end again";
    mouse(Mouse::Action::click);
    EXPECT_EQ(m.panels.focus, Panel::runs);
    mouse(Mouse::Action::double_click);
    EXPECT_TRUE(m.panels.full);
    EXPECT_TRUE(shows_log(m));
}

TEST(View, HostileNamesReachNoTerminal)
{
    Model m = model(24, 80, 1);
    m.picture.runs[0].name = "\x1b]0;owned\a";
    m.picture.runs[0].facts = {"\x9b"
                               "31m",
                               "\u202e"};
    m.picture.runs[0].state = m.picture.runs[0].gpus = "\x1b[2J";
    m.picture.gpus[0].name = m.picture.gpus[0].nodes[0].name = "\x1b[31m";
    m.picture.holders[0].id = m.picture.cluster = m.picture.answer = "\a\x9b";
    m.details.at("0").events[0].text = m.details.at("0").gpus[0].name = "\x1b]52;c;\a";
    m.toasts = {{"\x1b[2J", RunMark::done, m.now + std::chrono::seconds(9)}};
    update(m, Key{Special::none, U'3'});
    for (int tab = 0; tab < 5; ++tab) {
        update(m, Key{Special::none, U']'});
        for (const char c : view(m).text()) {
            const auto byte = static_cast<unsigned char>(c);
            EXPECT_TRUE(byte >= 0x20 || byte == '\n');
            EXPECT_NE(byte, 0x9b);
        }
    }
}

std::string line_at(const std::string& text, int row)
{
    std::size_t begin = 0;
    for (int i = 0; i < row; ++i) {
        begin = text.find('\n', begin) + 1;
    }
    return text.substr(begin, text.find('\n', begin) - begin);
}

/// The row and the column of a text.
std::pair<int, int> place_of(const std::string& text, std::string_view wanted, int rows)
{
    for (int row = 0; row < rows; ++row) {
        const std::string line = line_at(text, row);
        if (const std::size_t at = line.find(wanted); at != std::string::npos) {
            return {row, static_cast<int>(cells(line.substr(0, at)))};
        }
    }
    return {-1, -1};
}

TEST(View, ColoursTheUseOfGpusButNoLosses)
{
    Model m = model(30, 124, 1);
    m.theme.ascii = false;
    m.theme.gradients = true;
    m.picture.runs[0].running = true;
    m.details.at("0").curves.push_back({"GPUs busy", "%", {{1, {}, 97.0}, {2, {}, 50.0}}, false});
    update(m, Key{Special::none, U'1'}); // the row of the run is not reversed
    const Canvas drawn = view(m);
    const auto [row, loss] = place_of(drawn.text(), "LOSS", 30);
    const auto [same, use] = place_of(drawn.text(), "GPU USE", 30);
    ASSERT_GT(row, 0) << drawn.text();
    EXPECT_EQ(drawn.at(row + 1, loss).glyph, "█");
    EXPECT_FALSE(drawn.at(row + 1, loss).style.fg);
    EXPECT_TRUE(drawn.at(row + 1, use).style.fg.value_or(0) & k_rgb);
}

TEST(View, ForecastsWhenAGpuIsFreeOnlyWhereNoneIs)
{
    Model m = model(30, 124, 1);
    m.picture.gpus[0].forecast = "50 % by 16:10, 90 % by 16:35";
    update(m, Key{Special::none, U'2'});
    EXPECT_THAT(view(m).text(), HasSubstr(" k80: 50 % by 16:10, 90 % by 16:35 "));
    m.picture.gpus[0].free = 1;
    EXPECT_THAT(view(m).text(), testing::Not(HasSubstr("50 % by")));
}

/// Messages for a while, the newest last.
std::vector<Toast> toasts(const Model& m)
{
    const Time until = m.now + std::chrono::seconds(9);
    return {{"run 4709 (größe 最終): out of memory, the last lines of its log show where",
             RunMark::failed, until},
            {"run 4711 (train-0): done", RunMark::done, until},
            {"run 4710 (train-1): done", RunMark::done, until},
            {"run 4712 (other) has started", RunMark::running, until}};
}

TEST(View, MessagesHideOnlyTheLowestBorder)
{
    for (const auto& [rows, columns] : {std::pair{10, 40}, {24, 80}, {30, 100}, {60, 200}}) {
        for (const char* const keys : {"1", "2", "3", "3]", "3\n", "+"}) {
            Model m = model(rows, columns, 5);
            for (const char key : std::string_view(keys)) {
                update(m, key == '\n' ? Key{Special::enter, 0}
                                      : Key{Special::none, static_cast<char32_t>(key)});
            }
            const std::string before = view(m).text();
            m.toasts = toasts(m);
            const std::string text = view(m).text();
            for (int row = 0; row < rows; ++row) {
                EXPECT_EQ(line_at(text, row) == line_at(before, row), row != rows - 2)
                    << row << "\n"
                    << text;
            }
            EXPECT_THAT(line_at(text, rows - 2), HasSubstr(" run 4712 (other) has started "));
        }
    }
}

TEST(View, MessagesWithoutRoomAreCounted)
{
    Model m = model(24, 80, 1);
    m.toasts = toasts(m);
    EXPECT_THAT(
        line_at(view(m).text(), 22),
        testing::EndsWith("-+2- + run 4710 (train-1): done - > run 4712 (other) has started +"));
    update(m, Resized{24, 100});
    EXPECT_THAT(line_at(view(m).text(), 22),
                testing::EndsWith("+1- + run 4711 (train-0): done - + run 4710 (train-1): done "
                                  "- > run 4712 (other) has started +"));
    m.toasts.resize(1);
    update(m, Resized{24, 60});
    EXPECT_THAT(line_at(view(m).text(), 22),
                testing::EndsWith(": out of memory, the last lines o…+"));
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
