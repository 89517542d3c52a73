// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/board_view.h"

#include "tui/screen_files.h"
#include "tui/update.h"
#include "tui/view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <memory>

/// The tries of a sweep in `gpuq top`.
namespace gpuq::tui {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::VariantWith;

const Time k_board_time{1'795'000'012s};

TryRow try_with(std::size_t number, std::optional<double> best)
{
    static const char* const k_rates[] = {"1e-5", "1e-4", "3e-4", "1e-3", "3e-3", "1e-2"};
    TryRow row;
    row.number = number;
    row.values = {k_rates[(number - 1) % std::size(k_rates)], number % 2 == 0 ? "relu" : "gelu"};
    row.state = best ? "done" : "waiting";
    row.mark = best ? RunMark::done : RunMark::waiting;
    row.active = !best;
    row.best = row.last = best;
    row.used = best ? std::chrono::minutes(3 + static_cast<int>(number)) : 0min;
    return row;
}

/// Try 5 is the best, 3 has failed, 7 is running, 8 to 12 are waiting.
Sweep sweep()
{
    Sweep made;
    made.metric = "loss";
    made.parameters = {"lr", "act"};
    const double results[] = {0.9, 0.5, 0, 0.21, 0.125, 0.33};
    const std::size_t ranks[] = {5, 4, 0, 2, 1, 3};
    for (std::size_t i = 0; i < 12; ++i) {
        made.tries.push_back(
            try_with(i + 1, i < 6 && i != 2 ? std::optional(results[i]) : std::nullopt));
        made.tries.back().rank = i < 6 ? ranks[i] : 0;
    }
    made.tries[2].state = "failed";
    made.tries[2].mark = RunMark::failed;
    made.tries[2].active = false;
    made.tries[6].state = "running";
    made.tries[6].mark = RunMark::running;
    made.tries[6].since = k_board_time - 95s;
    made.course = {{1, {}, 0.9}, {2, {}, 0.5}, {3, {}, 0.21}, {4, {}, 0.125}, {5, {}, 0.125}};
    made.best = 5;
    made.done = 5;
    made.failed = made.running = 1;
    return made;
}

RunRow run(std::string key, std::string id, std::string name)
{
    RunRow row;
    row.key = std::move(key);
    row.id = std::move(id);
    row.name = std::move(name);
    row.state = "running";
    row.mark = RunMark::running;
    row.gpus = "1";
    row.held = "1 GPU";
    row.active = row.running = true;
    row.facts = {"runs on n0", "python3 train.py"};
    return row;
}

RunRow row_of(Sweep content)
{
    RunRow row = run("S", "0f3a9c1e", "cal");
    row.running = false;
    row.state = "5/12 done, 1 failed, 1 running";
    row.part = 0.5;
    row.ends = k_board_time + 34min;
    row.facts = {"5 of 12 tries done, 1 failed, 1 running, 5 waiting",
                 "GPU-hours: 0.6 used, about 0.7 to come; finish: about 11:40"};
    row.sweep = std::make_shared<const Sweep>(std::move(content));
    return row;
}

Picture picture(Sweep content)
{
    Picture made;
    made.cluster = "centre";
    made.answer = "yes: 2 k80 in queue calibration (up to 2 h)";
    made.slurm_at = k_board_time - 12s;
    made.runs = {row_of(std::move(content)), run("w2", "4712", "cal-w2"),
                 run("w1", "4711", "cal-w1"), run("other", "4700", "train")};
    made.runs[1].sweep_key = made.runs[2].sweep_key = "S";
    return made;
}

Model model(Resized size, Sweep content = sweep())
{
    Model made;
    update(made, size);
    update(made, Tick{k_board_time});
    update(made, PictureRead{picture(std::move(content))});
    return made;
}

std::vector<Effect> type(Model& shown, std::string_view keys)
{
    std::vector<Effect> effects;
    for (const char key : keys) {
        effects = update(shown, key == '\n'   ? Key{Special::enter, 0}
                                : key == '\b' ? Key{Special::escape, 0}
                                : key == '>'  ? Key{Special::right, 0}
                                : key == '<'  ? Key{Special::left, 0}
                                              : Key{Special::none, static_cast<char32_t>(key)});
    }
    return effects;
}

std::vector<std::string> listed(const Model& shown)
{
    std::vector<std::string> keys;
    for (const std::size_t at : shown.shown) {
        keys.push_back(shown.picture.runs[at].key);
    }
    return keys;
}

std::vector<std::size_t> leaderboard(const Model& shown)
{
    std::vector<std::size_t> numbers;
    for (const std::size_t at : shown.board.order) {
        numbers.push_back(at + 1);
    }
    return numbers;
}

Detail detail_of_try(std::size_t number)
{
    Detail detail;
    detail.key = fmt::format("S/{}", number);
    detail.step = 200;
    Curve curve{"loss", "", {}, true};
    for (int i = 0; i < 40; ++i) {
        curve.dots.push_back({5.0 * i, {}, 1.0 / (1 + i)});
    }
    detail.curves = {curve};
    return detail;
}

TEST(Sweeps, AreOneLineWithTheirWorkersFoldedBelow)
{
    Model shown = model({24, 80});
    EXPECT_THAT(listed(shown), ElementsAre("S", "other"));
    type(shown, ">");
    EXPECT_THAT(listed(shown), ElementsAre("S", "w2", "w1", "other"));
    type(shown, "ooo"); // by state, progress, ...: they stay together
    EXPECT_THAT(listed(shown), ElementsAre("S", "w2", "w1", "other"));
    type(shown, "j<");
    EXPECT_THAT(listed(shown), ElementsAre("S", "other"));
    EXPECT_EQ(shown.selected, "S");
    type(shown, "j>");
    EXPECT_THAT(view(shown).text(), HasSubstr("hide and show the workers of a sweep"));
}

TEST(Sweeps, AWorkerThatTheFilterFindsHasALineOfItsOwn)
{
    Model shown = model({24, 80});
    type(shown, "/4711\n");
    EXPECT_THAT(listed(shown), ElementsAre("w1"));
    EXPECT_THAT(view(shown).text(), HasSubstr("cal-w1"));
    type(shown, "\b/cal-w\nb");
    EXPECT_THAT(view(shown).text(), HasSubstr("cal-w: 2 "));
    type(shown, "b\b/cal\n");
    EXPECT_THAT(listed(shown), ElementsAre("S")) << "below its sweep";
    type(shown, "\b");
    Picture ended = picture(sweep());
    ended.runs[0].active = false;
    update(shown, PictureRead{ended});
    type(shown, "z");
    EXPECT_THAT(listed(shown), ElementsAre("w2", "w1", "other")) << "its workers still run";
}

TEST(Sweeps, ReportTheirEndAndNotThatOfEachWorker)
{
    Model shown = model({24, 80});
    Picture next = picture(sweep());
    next.runs[1].active = next.runs[1].running = false;
    EXPECT_THAT(update(shown, PictureRead{next}), IsEmpty());
    next.runs[0].active = false;
    next.runs[0].state = "12/12 done";
    next.runs[0].mark = RunMark::done;
    EXPECT_THAT(update(shown, PictureRead{next}),
                ElementsAre(VariantWith<Notify>(Notify{"sweep cal: 12/12 done", RunMark::done,
                                                       next.runs[0].key, next.runs[0].id})));
}

TEST(Leaderboard, IsSortedByMetricNumberAndTime)
{
    Model shown = model({24, 80});
    type(shown, "\n");
    EXPECT_THAT(leaderboard(shown), ElementsAre(5, 4, 6, 2, 1, 7, 8, 9, 10, 11, 12, 3));
    type(shown, "O");
    EXPECT_THAT(leaderboard(shown), ElementsAre(1, 2, 6, 4, 5, 7, 8, 9, 10, 11, 12, 3));
    type(shown, "Oo");
    EXPECT_THAT(leaderboard(shown), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    type(shown, "o");
    EXPECT_THAT(leaderboard(shown), ElementsAre(6, 5, 4, 2, 1, 7, 8, 9, 10, 11, 12, 3));
}

TEST(Leaderboard, KeepsTheChosenTryAndElseTheBest)
{
    Model shown = model({24, 80});
    type(shown, "\n");
    EXPECT_EQ(selected_try(shown)->number, 5U);
    Sweep next = sweep();
    std::swap(next.tries[3].rank, next.tries[4].rank);
    update(shown, PictureRead{picture(next)});
    EXPECT_EQ(selected_try(shown)->number, 4U) << "now the best";
    type(shown, "j");
    update(shown, PictureRead{picture(sweep())});
    EXPECT_EQ(selected_try(shown)->number, 5U) << "chosen";
}

TEST(Leaderboard, OpensTheLogOfATryAndOfTheNext)
{
    Model shown = model({24, 80});
    const auto effects = type(shown, "\nj\n");
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_EQ(std::get<OpenLog>(effects[0]).key, "S/4");
    update(shown, LogBytes{"S/4", Stream::out, "step 1 loss 0.5\n", true, 0, ""});
    EXPECT_THAT(view(shown).text(), HasSubstr("output of try cal/4 (lr=1e-3 act=relu)"));
    EXPECT_THAT(view(shown).text(), HasSubstr("step 1 loss 0.5"));
    EXPECT_THAT(view(shown).text(), HasSubstr("Esc back  x stop  X stop all  [ ] try  / search"));
    EXPECT_THAT(view(shown).text(), Not(HasSubstr("o stderr")));
    EXPECT_EQ(std::get<OpenLog>(type(shown, "]")[0]).key, "S/6");
    EXPECT_TRUE(std::holds_alternative<CloseLog>(type(shown, "\b")[0]));
    EXPECT_THAT(view(shown).text(), HasSubstr("best loss over lr (log)"));
    type(shown, "\b");
    EXPECT_EQ(shown.panels.focus, Panel::runs);
}

TEST(Leaderboard, TheLogStaysThatOfTheTryThatWasOpened)
{
    for (const char* keys : {"\n\n", "\nx"}) {
        Model shown = model({24, 80});
        type(shown, keys);
        update(shown, LogBytes{"S/5", Stream::out, "step 1 loss 0.5\n", true, 0, ""});
        Sweep next = sweep();
        std::swap(next.tries[3].rank, next.tries[4].rank);
        EXPECT_THAT(update(shown, PictureRead{picture(next)}), IsEmpty());
        EXPECT_EQ(selected_try(shown)->number, 5U) << keys;
    }
}

TEST(Leaderboard, ComparesMarkedTries)
{
    Model shown = model({24, 80});
    type(shown, "\nc");
    EXPECT_THAT(view(shown).text(), HasSubstr("mark two or more tries with Space"));
    const auto effects = type(shown, " j c");
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_THAT(std::get<Compare>(effects[0]).keys, ElementsAre("S/5", "S/6"));
    Comparison compared;
    compared.keys = {"S/5", "S/6"};
    compared.names = {"cal/5", "cal/6"};
    update(shown, ComparisonRead{compared});
    EXPECT_THAT(view(shown).text(), HasSubstr("Compare  "));
    type(shown, "\b");
    EXPECT_THAT(view(shown).text(), HasSubstr("by metric, 2 marked"));
    type(shown, "\b");
    EXPECT_THAT(shown.board.marks, IsEmpty());
}

TEST(Leaderboard, StopsTriesAndTheSweepAfterConfirmation)
{
    Model shown = model({24, 80});
    type(shown, "\nx");
    EXPECT_THAT(view(shown).text(), HasSubstr("this try has ended already"));
    type(shown, "jjjjjx");
    EXPECT_THAT(view(shown).text(), HasSubstr("stop try cal/7 (lr=1e-5 act=gelu), running? y/N"));
    EXPECT_THAT(type(shown, "y"), ElementsAre(VariantWith<Command>(Command{{"stop", "S/7"}})));
    type(shown, "  x");
    EXPECT_THAT(view(shown).text(), HasSubstr("stop 2 tries of cal: 7 8? y/N"));
    EXPECT_THAT(type(shown, "y"),
                ElementsAre(VariantWith<Command>(Command{{"stop", "S/7", "S/8"}})));
    type(shown, "X");
    EXPECT_THAT(view(shown).text(), HasSubstr("stop sweep cal, 5/12 done, 1 failed"));
    EXPECT_THAT(type(shown, "y"), ElementsAre(VariantWith<Command>(Command{{"stop", "S"}})));
}

TEST(Sweeps, AreStoppedAndShownFromTheList)
{
    Model shown = model({24, 80});
    type(shown, "x");
    EXPECT_THAT(view(shown).text(), HasSubstr("stop sweep cal, 5/12 done"));
    EXPECT_THAT(type(shown, "y"), ElementsAre(VariantWith<Command>(Command{{"stop", "S"}})));
    EXPECT_THAT(type(shown, "v"),
                ElementsAre(VariantWith<Command>(Command{{"show", "S"}, true, true})));
    type(shown, "a");
    EXPECT_THAT(view(shown).text(), HasSubstr("cal is a sweep, and this key is for runs"));
}

TEST(Leaderboard, ReadsTheLogsOfTheTriesShownOnly)
{
    Sweep large = sweep();
    for (std::size_t i = 13; i <= 1000; ++i) {
        large.tries.push_back(try_with(i, std::nullopt));
    }
    Model shown = model({24, 80}, std::move(large));
    type(shown, "\n");
    const auto keys = runs_in_detail(shown);
    EXPECT_EQ(keys.front(), "S/5");
    EXPECT_LT(keys.size(), 24U);
    type(shown, "G");
    EXPECT_EQ(runs_in_detail(shown).front(), "S/3");
    update(shown, DetailRead{detail_of_try(3)});
    EXPECT_THAT(view(shown).text(), HasSubstr(" 200 "));
    type(shown, "\n");
    EXPECT_THAT(runs_in_detail(shown), IsEmpty()) << "the log covers them";
}

TEST(Leaderboard, PlotsOverAllValuesOfTheParameterFromTheFirstResultOn)
{
    Sweep begun = sweep();
    for (TryRow& entry : begun.tries) {
        entry.best = entry.number == 3 ? std::optional(0.5) : std::nullopt;
    }
    Model shown = model({24, 80}, std::move(begun));
    type(shown, "\n");
    const std::string text = view(shown).text();
    EXPECT_THAT(text, HasSubstr("best loss over lr (log)"));
    EXPECT_THAT(text, HasSubstr("1e-05"));
    EXPECT_THAT(text, HasSubstr(" 0.01"));
}

TEST(Leaderboard, FollowsTheMouse)
{
    Model shown = model({24, 80});
    type(shown, "\n");
    const int row = 1 + 1 + 2 + 1; // below the frame, two lines and the header
    update(shown, Mouse{Mouse::Action::click, row + 2, 10});
    EXPECT_EQ(selected_try(shown)->number, 6U);
    update(shown, Mouse{Mouse::Action::wheel_up, row, 10});
    EXPECT_EQ(selected_try(shown)->number, 5U);
    update(shown, Mouse{Mouse::Action::double_click, row + 1, 10});
    EXPECT_TRUE(shown.log && shown.log->key == "S/4");
}

Sweep hostile()
{
    Sweep made = sweep();
    made.metric = "\x1b[31mloss\a";
    made.parameters = {"lr\x1b]0;x\a", "a\nb"};
    for (TryRow& entry : made.tries) {
        entry.values = {"\x1b[2J", "\u202e\x9b"
                                   "1m"};
        entry.state += "\r";
    }
    return made;
}

TEST(Sweeps, HostileTextsReachNoTerminal)
{
    for (const char* keys : {"", "\n", "\n]", "\n\n", "\njjjjjx", "\nX"}) {
        Model shown = model({30, 100}, hostile());
        shown.picture.runs[0].name = "\x1b[31mcal\n";
        shown.picture.runs[0].facts = {"\x1b[1m", "\a"};
        type(shown, keys);
        std::string text = view(shown).text();
        std::erase(text, '\n');
        EXPECT_TRUE(std::none_of(text.begin(), text.end(), [](char c) {
            return c >= 0 && c < ' ';
        })) << keys;
        EXPECT_THAT(text, Not(HasSubstr("\u202e"))) << keys;
    }
}

TEST(Sweeps, FitEverySize)
{
    for (int rows = 1; rows <= 62; rows += 6) {
        for (int columns = 1; columns <= 210; columns += 13) {
            for (const bool ascii : {false, true}) {
                Model shown = model({rows, columns});
                shown.theme.ascii = ascii;
                type(shown, "\n");
                (void)view(shown);
                type(shown, "\n");
                (void)view(shown);
            }
        }
    }
}

TEST(Sweeps, TenThousandTriesAreDrawnAtOnce)
{
    Sweep large = sweep();
    for (std::size_t i = 13; i <= 10'000; ++i) {
        large.tries.push_back(try_with(i, 1 + static_cast<double>(i * 7919 % 10'000)));
        large.tries.back().rank = i;
    }
    Model shown = model({60, 200}, std::move(large));
    type(shown, "\n");
    const std::clock_t begin = std::clock(); // not affected by other processes
    constexpr int k_keys = 20;
    for (int i = 0; i < k_keys; ++i) {
        type(shown, "j");
        (void)view(shown);
    }
    const double each =
        1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / k_keys;
    RecordProperty("milliseconds", std::to_string(each));
    EXPECT_LT(each, 50) << "milliseconds per key";
}

TEST(SweepScreens, LookAsTheyDid)
{
    use_utc();
    Sweep nothing = sweep();
    for (TryRow& entry : nothing.tries) {
        entry = try_with(entry.number, std::nullopt);
    }
    nothing.course.clear();
    nothing.best = nothing.done = nothing.failed = nothing.running = 0;
    Sweep failed = nothing;
    for (TryRow& entry : failed.tries) {
        entry.state = "failed";
        entry.mark = RunMark::failed;
        entry.active = false;
        entry.used = 2s;
    }
    failed.failed = failed.tries.size();
    Sweep wide = sweep();
    wide.parameters = {"学習率_最終", std::string(40, 'p'), "batch", "layers", "dropout"};
    for (TryRow& entry : wide.tries) {
        entry.values = {"最終的な値" + std::to_string(entry.number), std::string(60, 'v'), "32",
                        "8", "0.1"};
    }
    const struct {
        const char* name;
        const char* keys;
        Sweep content;
        bool ascii = false;
    } k_panes[] = {{"sweeps", ">", sweep()},          {"sweep", "\n", sweep()},
                   {"sweep-act", "\n]j j ", sweep()}, {"sweep-ascii", "\n", sweep(), true},
                   {"sweep-waiting", "\n", nothing},  {"sweep-failed", "\n", failed},
                   {"sweep-wide", "\n", wide},        {"sweep-help", "\n?", sweep()}};
    for (const auto& pane : k_panes) {
        for (const Resized& size : {Resized{10, 40}, {24, 80}, {30, 100}, {60, 200}}) {
            Model shown = model(size, pane.content);
            shown.theme.ascii = pane.ascii;
            for (const std::size_t number : {5, 4, 7}) {
                update(shown, DetailRead{detail_of_try(number)});
            }
            type(shown, pane.keys);
            expect_screen(pane.name, size, view(shown).text());
        }
    }
}

} // namespace
} // namespace gpuq::tui
