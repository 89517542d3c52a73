// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/update.h"

#include "report/ending_text.h"
#include "tui/gpu_panel.h"
#include "tui/layout.h"
#include "tui/log_view.h"
#include "tui/runs_panel.h"
#include "tui/view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

namespace gpuq::tui {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Strings = std::vector<std::string>;

Picture picture(int runs)
{
    Picture made;
    made.cluster = "local";
    made.answer = "yes: 2 k80 in queue calibration (up to 2 h)";
    made.slurm_at = Time(std::chrono::seconds(995));
    for (int i = 0; i < runs; ++i) {
        RunRow row;
        row.key = "key" + std::to_string(i);
        row.id = std::to_string(100 + i);
        row.name = "run" + std::to_string(i);
        row.gpus = "1";
        row.held = "1 GPU";
        row.again = "-- a.py --lr 1";
        row.active = row.running = i % 2 == 0;
        row.state = row.active ? "running" : "done";
        row.mark = row.active ? RunMark::running : RunMark::done;
        row.since = row.running ? "running for 47 h" : "";
        row.facts = {"runs on n0", "python3 train.py"};
        made.runs.push_back(row);
    }
    return made;
}

Model model(int runs, Resized size = {24, 80})
{
    Model made;
    made.size = size;
    made.now = Time(std::chrono::seconds(1000));
    made.list.sort = SortBy::newest;
    EXPECT_TRUE(update(made, PictureRead{picture(runs)}).empty());
    return made;
}

std::vector<Effect> press(Model& model, std::string_view keys)
{
    std::vector<Effect> all;
    for (const char key : keys) {
        Key pressed{Special::none, static_cast<char32_t>(static_cast<unsigned char>(key))};
        if (key == '\n') {
            pressed = Key{Special::enter, 0};
        } else if (key == '\x1b') {
            pressed = Key{Special::escape, 0};
        }
        for (Effect& effect : update(model, pressed)) {
            all.push_back(std::move(effect));
        }
    }
    return all;
}

/// The commands among the effects.
std::vector<Strings> commands(const std::vector<Effect>& effects)
{
    std::vector<Strings> found;
    for (const Effect& effect : effects) {
        if (const auto* command = std::get_if<Command>(&effect)) {
            found.push_back(command->arguments);
        }
    }
    return found;
}

std::string screen(const Model& model)
{
    return view(model).text();
}

/// The rows of the log alone, without the border of its panel.
std::string log_rows(const Model& model)
{
    const Rect area = area_of_tab(model);
    Canvas canvas(area.height, area.width);
    draw_log(canvas, {0, 0, area.height, area.width}, *model.log, model.found);
    return canvas.text();
}

TEST(Update, SelectionIsHeldByTheRunAndNotByItsRow)
{
    Model m = model(4);
    EXPECT_EQ(m.selected, "key0");
    press(m, "jj");
    EXPECT_EQ(m.selected, "key2");
    Picture next = picture(4);
    next.runs.erase(next.runs.begin());
    update(m, PictureRead{next});
    EXPECT_EQ(m.selected, "key2");
    press(m, "kkkk");
    EXPECT_EQ(m.selected, "key1");
    press(m, "G");
    EXPECT_EQ(m.selected, "key3");
}

Picture without(Picture all, std::string_view key)
{
    std::erase_if(all.runs, [&](const RunRow& run) { return run.key == key; });
    return all;
}

Picture with_end_of(Picture all, std::size_t run)
{
    RunRow& row = all.runs[run];
    row.active = row.running = false;
    row.state = "failed";
    row.mark = RunMark::failed;
    return all;
}

TEST(Update, ARunThatLeavesTheListStaysInItsPanel)
{
    for (const char* keys : {"z", "/running\n"}) {
        Model m = model(8);
        press(m, keys);
        press(m, "j\n");
        ASSERT_EQ(m.selected, "key2") << keys;
        update(m, LogBytes{"key2", Stream::out, "Traceback\n", true, 0, ""});
        update(m, PictureRead{with_end_of(picture(8), 2)});
        EXPECT_EQ(m.selected, "key2") << keys;
        EXPECT_THAT(screen(m), AllOf(HasSubstr("run 102 (run2)"), HasSubstr("Traceback"))) << keys;
        EXPECT_TRUE(commands(press(m, "S")).empty()) << keys;
        EXPECT_THAT(screen(m), HasSubstr("run 102 is not running")) << keys;
        press(m, "\x1b");
        EXPECT_NE(m.selected, "key2") << "it is not in the list";
    }
}

TEST(Update, ARunThatIsNoLongerListedStaysInItsPanel)
{
    Model m = model(4);
    press(m, "jj\n");
    update(m, LogBytes{"key2", Stream::out, "Traceback\n", true, 0, ""});
    for (int i = 0; i < 2; ++i) {
        update(m, PictureRead{without(picture(4), "key2")});
        EXPECT_EQ(m.selected, "key2");
    }
    EXPECT_THAT(screen(m), HasSubstr("Traceback"));
    EXPECT_TRUE(press(m, "x").empty());
    EXPECT_THAT(screen(m), HasSubstr("has ended already"));
    press(m, "\x1b");
    update(m, PictureRead{without(picture(4), "key2")});
    EXPECT_EQ(m.selected, "key3");
    EXPECT_EQ(m.shown.size(), 3U);
}

TEST(Update, TheNearestRunIsSelectedWhenTheSelectedOneLeavesTheList)
{
    Model m = model(9);
    press(m, "jjjj");
    update(m, PictureRead{without(picture(9), "key4")});
    EXPECT_EQ(m.selected, "key5");
    update(m, PictureRead{picture(9)});
    EXPECT_EQ(m.selected, "key4") << "it has returned";
    update(m, PictureRead{without(picture(9), "key4")});
    press(m, "S"); // the user has seen that another one is selected
    update(m, PictureRead{picture(9)});
    EXPECT_EQ(m.selected, "key5");
    press(m, "z");
    EXPECT_EQ(m.selected, "key6") << "5 has ended";
    press(m, "z");
    EXPECT_EQ(m.selected, "key5");
    press(m, "/run8");
    EXPECT_EQ(m.selected, "key8");
    press(m, "\x1b");
    EXPECT_EQ(m.selected, "key5");
}

TEST(Update, RunsThatCanNotBeReadAreKept)
{
    Model m = model(4);
    press(m, " jj\n");
    ASSERT_EQ(m.selected, "key3");
    update(m, LogBytes{"key3", Stream::out, "Traceback\n", true, 0, ""});
    DetailRead detail;
    detail.detail.key = "key3";
    update(m, detail);
    Picture unread;
    unread.listed = false;
    unread.trouble = "/home/ada/runs: Stale file handle";
    EXPECT_TRUE(update(m, PictureRead{unread}).empty());
    EXPECT_EQ(m.selected, "key3");
    EXPECT_THAT(screen(m), AllOf(HasSubstr("Stale file handle"), HasSubstr("Traceback")));
    EXPECT_TRUE(m.details.contains("key3"));
    press(m, "\x1b");
    EXPECT_THAT(screen(m),
                AllOf(HasSubstr("2 Runs (not updated), by newest, 1 marked"), HasSubstr("run3")));
    update(m, PictureRead{picture(4)});
    EXPECT_THAT(screen(m), Not(HasSubstr("not updated")));
    Model first;
    update(first, PictureRead{unread});
    EXPECT_THAT(screen(first), HasSubstr("your runs can't be read"));
}

TEST(Update, ScrollsTheListOnlyAsFarAsTheSelectionNeeds)
{
    Model m = model(60);
    press(m, std::string(30, 'j'));
    const std::size_t first = m.list.first_row;
    EXPECT_GT(first, 0U);
    press(m, "k");
    EXPECT_EQ(m.selected, "key29");
    EXPECT_EQ(m.list.first_row, first);
    update(m, Resized{12, 80});
    EXPECT_THAT(screen(m), HasSubstr("run29"));
    press(m, std::string(29, 'k'));
    EXPECT_EQ(m.list.first_row, 0U);
}

TEST(Update, StopsARunOnlyAfterNamingItAndAsking)
{
    Model m = model(4);
    EXPECT_TRUE(press(m, "x").empty());
    EXPECT_THAT(screen(m), HasSubstr("stop run 100 (run0), 1 GPU, running for 47 h? y/N"));
    EXPECT_TRUE(press(m, "\n").empty());
    EXPECT_THAT(screen(m), HasSubstr("nothing done"));
    EXPECT_EQ(commands(press(m, "xy")), (std::vector<Strings>{{"stop", "key0"}}));
}

TEST(Update, AQuestionAboutManyRunsShowsItsKeys)
{
    Model m = model(60);
    for (int i = 0; i < 60; ++i) {
        press(m, " ");
    }
    press(m, "x");
    EXPECT_THAT(screen(m), AllOf(HasSubstr("stop 30 runs: 100 102 "), HasSubstr(" 158? y/N\n")));
    update(m, Resized{2, 30});
    EXPECT_THAT(screen(m), HasSubstr("? y/N\n"));
}

TEST(Update, SavesAllMarkedRunsAfterOneQuestion)
{
    Model m = model(6);
    EXPECT_EQ(commands(press(m, "S")), (std::vector<Strings>{{"save", "key0"}}));
    m.picture.runs[5].plain = true;
    press(m, "    j"); // 1 and 3 have ended; a plain job is selected
    ASSERT_EQ(m.selected, "key5");
    EXPECT_TRUE(commands(press(m, "S")).empty());
    EXPECT_THAT(screen(m), HasSubstr("save 2 runs: 100 102? y/N"));
    EXPECT_EQ(commands(press(m, "y")), (std::vector<Strings>{{"save", "key0"}, {"save", "key2"}}));
    update(m, Done{"run 100 is asked to save", false, {"save", "key0"}});
    update(m, Done{"run 102 is asked to save", false, {"save", "key2"}});
    EXPECT_THAT(screen(m), HasSubstr("run 100 is asked to save\nrun 102 is asked to save"));
    press(m, "\x1b");
    update(m, Done{"run 104 is asked to save", false, {"save", "key4"}});
    EXPECT_THAT(screen(m), Not(HasSubstr("102 is asked"))) << "it has been read";
    press(m, "\x1b");
    press(m, "kk kS");
    EXPECT_THAT(screen(m), HasSubstr("none of the marked runs is running: nothing to save"));
}

/// The run in question is stopped, even if another row has moved under the cursor.
TEST(Update, TheQuestionKeepsItsRun)
{
    Model m = model(4);
    press(m, "x");
    Picture next = picture(4);
    next.runs.erase(next.runs.begin());
    update(m, PictureRead{next});
    EXPECT_EQ(commands(press(m, "y")), (std::vector<Strings>{{"stop", "key0"}}));
}

TEST(Update, RefusesWhatMakesNoSense)
{
    Model m = model(4);
    EXPECT_TRUE(press(m, "jx").empty());
    EXPECT_THAT(screen(m), HasSubstr("run 101 has ended already"));
    EXPECT_TRUE(press(m, "a").empty());
    EXPECT_THAT(screen(m), HasSubstr("is not running"));
    EXPECT_TRUE(press(m, "ks").empty());
    EXPECT_THAT(screen(m), HasSubstr("can't save"));
}

TEST(Update, CtrlCLeavesAndTouchesNoRun)
{
    for (const char* before : {"", "x\x03", "e\x03", "/\x03", "?", "\n"}) {
        Model m = model(2);
        const auto before_leaving = press(m, before);
        EXPECT_TRUE(commands(before_leaving).empty());
        EXPECT_FALSE(m.prompt) << "Ctrl-C cancels only the line being typed";
        EXPECT_FALSE(m.question) << "or only the question";
        for (const Effect& effect : before_leaving) {
            EXPECT_FALSE(std::holds_alternative<Quit>(effect)) << before;
        }
        const auto effects = press(m, "\x03");
        EXPECT_TRUE(commands(effects).empty());
        ASSERT_FALSE(effects.empty());
        EXPECT_TRUE(std::holds_alternative<Quit>(effects.back())) << before;
    }
}

TEST(Update, StartsARunByTypedWords)
{
    Model m = model(1);
    EXPECT_EQ(commands(press(m, "+-J 'my run' -t 2h train.py\n")),
              (std::vector<Strings>{{"run", "--detach", "-J", "my run", "-t", "2h", "train.py"}}));
    EXPECT_TRUE(commands(press(m, "+-J 'my\n")).empty());
    EXPECT_THAT(screen(m), HasSubstr("is never closed in: "));
    EXPECT_TRUE(commands(press(m, "train.py\x1b")).empty());
    EXPECT_FALSE(m.commands.form);
}

TEST(Update, EditsWhatIsBeingTyped)
{
    Model m = model(1);
    const auto special = [&](Special key) { update(m, Key{key, 0}); };
    press(m, ":ain.py -t 2h");
    special(Special::home);
    press(m, "tr");
    special(Special::right);
    special(Special::left);
    EXPECT_EQ(m.prompt->typed, "train.py -t 2h");
    EXPECT_THAT(screen(m), HasSubstr(":gpuq train.py -t 2h\n"));
    special(Special::erase);
    press(m, "A\x05 more words\x17");
    EXPECT_EQ(m.prompt->typed, "trAin.py -t 2h more ");
    press(m, "\x17\x7f");
    press(m, "\x01-J x \x05!");
    EXPECT_EQ(m.prompt->typed, "-J x trAin.py -t 2h!");
    update(m, Key{Special::none, U'ß'});
    special(Special::left);
    special(Special::erase);
    special(Special::erase); // nothing left to erase
    special(Special::left);
    press(m, "\x15");
    EXPECT_EQ(m.prompt->typed, "!");
    special(Special::left);
    EXPECT_EQ(m.prompt->cursor, 0U);
}

/// The end of a command that has started a run.
Done started(const std::string& key)
{
    return {"its output: gpuq logs -f 100", false, {"run", "--detach"}, key};
}

TEST(Update, SelectsTheRunThatWasStarted)
{
    Model m = model(3);
    press(m, "+train.py\n");
    update(m, started("key4"));
    update(m, PictureRead{picture(4)});
    EXPECT_EQ(m.selected, "key0") << "another one, of cron for instance";
    Picture next = picture(5);
    std::reverse(next.runs.begin(), next.runs.end());
    update(m, PictureRead{next});
    EXPECT_EQ(m.selected, "key4");
    press(m, "k+train.py\n");
    update(m, started("key5"));
    press(m, "k"); // and the user moves to another run
    const std::string selected = m.selected;
    update(m, PictureRead{picture(6)});
    EXPECT_EQ(m.selected, selected);
}

TEST(Update, SelectsNoRunThatWasNotStartedFromHere)
{
    Model m = model(2);
    press(m, "+--help\n");
    update(m, Done{"usage: gpuq attach RUN", false, {"run", "--detach", "--help"}});
    update(m, PictureRead{picture(3)});
    EXPECT_EQ(m.selected, "key0") << "nothing was started";
    press(m, "+train.py\n");
    update(m, started("key3"));
    update(m, Tick{m.now + std::chrono::minutes(2)});
    update(m, PictureRead{picture(4)});
    EXPECT_EQ(m.selected, "key0") << "too late";
    press(m, "+train.py\n");
    update(m, started("key4"));
    press(m, "\n");
    update(m, PictureRead{picture(5)});
    EXPECT_EQ(m.selected, "key0") << "its panel is in use";
    press(m, "\x1b");
    update(m, PictureRead{picture(5)});
    EXPECT_EQ(m.selected, "key0");
}

TEST(Update, QueriesSlurmOnlyAfterCommandsThatChangeItsJobs)
{
    const auto refresh = [](const char* verb) {
        Model m = model(1);
        return std::get<Refresh>(update(m, Done{"", false, {verb, "key0"}}).at(0)).anew;
    };
    for (const char* verb : {"stop", "run", "again", "extend", "resume"}) {
        EXPECT_EQ(refresh(verb), Anew::unless_shared) << verb;
    }
    for (const char* verb : {"show", "logs", "save", "usage"}) {
        EXPECT_EQ(refresh(verb), Anew::no) << verb;
    }
    Model m = model(1);
    EXPECT_EQ(std::get<Refresh>(press(m, "r").at(0)).anew, Anew::always);
}

TEST(Update, ExtendsTheRunThatWasSelected)
{
    Model m = model(2);
    EXPECT_EQ(commands(press(m, "e2x\x7fh\n")), (std::vector<Strings>{{"extend", "key0", "2h"}}));
}

TEST(Update, OpensALogAndComesBack)
{
    Model m = model(2);
    const auto effects = press(m, "\n");
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_EQ(std::get<OpenLog>(effects[0]).key, "key0");
    EXPECT_TRUE(m.panels.full);
    update(m, LogBytes{"key0", Stream::out, "epoch 1\nepoch 2\n", true, 0, ""});
    update(m, LogBytes{"key1", Stream::out, "of another run", true, 0, ""});
    EXPECT_THAT(screen(m), HasSubstr("epoch 2"));
    EXPECT_THAT(screen(m), Not(HasSubstr("another")));
    const auto other = press(m, "o");
    EXPECT_EQ(std::get<OpenLog>(other[0]).stream, Stream::err);
    EXPECT_EQ(std::get<OpenLog>(other[0]).key, "key0");
    EXPECT_THAT(screen(m), HasSubstr("stderr of run 100 (run0)"));
    update(m, LogBytes{"key0", Stream::err, "Traceback", true, 0, ""});
    EXPECT_THAT(screen(m), HasSubstr("Traceback"));
    EXPECT_TRUE(std::holds_alternative<CloseLog>(press(m, "\x1b")[0]));
    EXPECT_FALSE(m.log);
}

TEST(Update, FollowsALogUntilOneScrollsBack)
{
    Model m = model(1, {13, 42});
    press(m, "\n");
    std::string text;
    for (int i = 0; i < 100; ++i) {
        text += "line " + std::to_string(i) + "\n";
    }
    update(m, LogBytes{"key0", Stream::out, text, true, 0, ""});
    EXPECT_THAT(screen(m), HasSubstr("line 99"));
    press(m, "kk");
    update(m, LogBytes{"key0", Stream::out, "line 100\n", false, 0, ""});
    EXPECT_THAT(screen(m), Not(HasSubstr("line 100")));
    press(m, "G");
    EXPECT_THAT(screen(m), HasSubstr("line 100"));
    press(m, "g");
    EXPECT_THAT(screen(m), HasSubstr("line 0 "));
}

TEST(Update, ALogThatASmallScreenHidesIsAsBeforeAfterwards)
{
    Model m = model(1);
    press(m, "3[[[o2");
    ASSERT_EQ(m.log->stream, Stream::err);
    std::string text;
    for (int i = 0; i < 100; ++i) {
        text += fmt::format("line {}\n", i);
    }
    update(m, LogBytes{"key0", Stream::err, text, true, 0, ""});
    press(m, "3gjj2");
    ASSERT_THAT(screen(m), HasSubstr("line 3 of 100"));
    EXPECT_TRUE(std::holds_alternative<CloseLog>(update(m, Resized{10, 80}).at(0)));
    const auto opened = update(m, Resized{24, 80});
    EXPECT_EQ(std::get<OpenLog>(opened.at(0)).stream, Stream::err);
    update(m, LogBytes{"key0", Stream::err, text + "line 100\n", true, 0, ""});
    EXPECT_THAT(screen(m), HasSubstr("stderr of run 100 (run0), line 3 of 100 [more: G]"));
    press(m, "3G");
    update(m, LogBytes{"key0", Stream::err, text + "line 100\n", true, 0, ""});
    EXPECT_THAT(screen(m), HasSubstr("line 100"));
}

/// Every row of a folded line can be reached, and each key moves by one row.
TEST(Update, ScrollsThroughFoldedLines)
{
    Model m = model(1, {13, 42});
    press(m, "\n");
    std::string text = "first\n";
    for (int i = 0; i < 30; ++i) {
        text += fmt::format("<{:02}>{:036}", i, 0);
    }
    text += "\nlast\n";
    update(m, LogBytes{"key0", Stream::out, text, true, 0, ""});
    EXPECT_THAT(screen(m), HasSubstr("last"));
    for (int i = 22; i >= 0; --i) {
        press(m, "k");
        EXPECT_THAT(log_rows(m), HasSubstr(fmt::format("\n<{:02}>", i))) << i;
        EXPECT_THAT(log_rows(m), Not(HasSubstr(fmt::format("<{:02}>", i + 8)))) << i;
    }
    press(m, "kkk");
    EXPECT_THAT(log_rows(m), HasSubstr("\nfirst\n<00>"));
    press(m, "jj");
    EXPECT_THAT(log_rows(m), HasSubstr("line 2 of 3 (G: end)\n<01>"));
    press(m, "/<17>\n");
    EXPECT_THAT(log_rows(m), HasSubstr("line 2 of 3 (G: end)\n<17>"));
    press(m, "G");
    EXPECT_THAT(log_rows(m), Not(HasSubstr("line 2 of 3"))) << "it follows";
}

TEST(Update, StaysWhereOneHasStoppedHoweverMuchComes)
{
    Model m = model(1, {13, 42});
    press(m, "\n");
    int line = 0;
    const auto more = [&](int count) {
        std::string text;
        for (const int end = line + count; line < end; ++line) {
            text += fmt::format("line {}\n", line);
        }
        return text;
    };
    update(m, LogBytes{"key0", Stream::out, more(4900), true, 0, ""});
    press(m, "k");
    const auto without_title = [&] {
        const std::string text = log_rows(m);
        return text.substr(text.find('\n'));
    };
    const std::string before = without_title();
    EXPECT_THAT(before, HasSubstr("line 4891\n"));
    for (int i = 0; i < 30; ++i) {
        update(m, LogBytes{"key0", Stream::out, more(200), false, 0, ""});
        ASSERT_EQ(without_title(), before) << i;
    }
    EXPECT_THAT(screen(m), HasSubstr("[more: G]"));
    update(m, LogBytes{"key0", Stream::out, more(9), true, 7'000'000, ""}); // it grew too fast
    EXPECT_EQ(without_title(), before);
    const auto effects = press(m, "G");
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_EQ(std::get<OpenLog>(effects[0]).key, "key0");
    update(m, LogBytes{"key0", Stream::out, "of before it was opened anew\n", false, 0, ""});
    EXPECT_THAT(screen(m), Not(HasSubstr("of before")));
    update(m, LogBytes{"key0", Stream::out, "newest\n", true, 7'000'000, ""});
    EXPECT_THAT(screen(m), HasSubstr("newest"));
    EXPECT_THAT(screen(m), Not(HasSubstr("more: G")));
}

TEST(Update, SaysThatALogHasMoreThanIsShown)
{
    Model m = model(1, {13, 62});
    press(m, "\n");
    std::string text;
    for (int i = 0; i < 4999; ++i) { // plus one empty line
        text += fmt::format("line {}\n", i);
    }
    update(m, LogBytes{"key0", Stream::out, text, true, 0, ""});
    press(m, "g");
    EXPECT_THAT(log_rows(m),
                HasSubstr("stdout of run 100 (run0), line 1 of 4999 (G: end)\nline 0\n"));
    press(m, "G");
    update(m, LogBytes{"key0", Stream::out, "more\nand more\n", false, 0, ""});
    press(m, "g");
    EXPECT_THAT(log_rows(m), HasSubstr("stdout of run 100 (run0), the end of 48 kB; p: all\n"
                                       "more above: p or gpuq logs 100 shows it\n"
                                       "line 2\n"));
    press(m, "j");
    EXPECT_THAT(log_rows(m), HasSubstr("p: all\nline 3\n"));
    press(m, "G");
    update(m, LogBytes{"key0", Stream::out, text, true, 7'000'000, ""});
    EXPECT_THAT(log_rows(m), HasSubstr("the end of 7.0 MB; p: all\n"));
    press(m, "g");
    EXPECT_THAT(log_rows(m), HasSubstr("more above"));
    update(m, Resized{2, 60});
    EXPECT_THAT(screen(m), Not(HasSubstr("more above")));
}

/// For any number of lines, j leads to the last one.
TEST(Update, ShowsTheLastLineOfALogOfWhichFewLinesAreShown)
{
    for (int count = 1; count < 20; ++count) {
        Model m = model(1, {10, 60});
        press(m, "\n");
        std::string text;
        for (int i = 0; i < count; ++i) {
            text += fmt::format("line {}.\n", i);
        }
        update(m, LogBytes{"key0", Stream::out, text, true, 7'000'000, ""});
        press(m, "g");
        press(m, std::string(30, 'j'));
        EXPECT_THAT(screen(m), HasSubstr(fmt::format("line {}.", count - 1))) << count;
    }
}

TEST(Update, ALongNameGivesWayToWhatOneHasToKnowOfTheLog)
{
    Model m = model(1);
    m.picture.runs[0].name = std::string(200, 'n');
    press(m, "\n");
    update(m, LogBytes{"key0", Stream::out, "a\n", true, 123'456'789, "", "the file was replaced"});
    EXPECT_THAT(log_rows(m), HasSubstr("n…) [the file was replaced], the end of 123 MB; p: all\n"));
}

TEST(Update, ShowsWhenEachLineWasWritten)
{
    Model m = model(1);
    press(m, "\n");
    const Time first(std::chrono::seconds(900)), second(std::chrono::seconds(950));
    LogBytes bytes{"key0", Stream::out, "old\none\n", true, 100, ""};
    bytes.times = {{104, first}, {108, second}}; // those before 104 are older
    update(m, bytes);
    EXPECT_THAT(log_rows(m), HasSubstr("\none\n")) << "not before it is asked for";
    press(m, "t");
    EXPECT_THAT(log_rows(m),
                HasSubstr("\n?              old\n" + short_moment_text(second) + " one\n"));
    update(m, LogBytes{"key0", Stream::out, "two\n" + std::string(70, 'x') + "\n", false, 0, ""});
    EXPECT_THAT(log_rows(m), HasSubstr("\n?              two\n?              xxx"))
        << "not known yet";
    press(m, "g");
    EXPECT_THAT(log_rows(m), Not(HasSubstr("\n?\n"))) << "nothing is behind the last line";
    press(m, "G");
    LogBytes more{"key0", Stream::out, "", false, 0, ""};
    more.times = {{200, m.now}};
    update(m, more);
    EXPECT_THAT(log_rows(m),
                HasSubstr("\n" + short_moment_text(m.now) + " two\n" + short_moment_text(m.now) +
                          " " + std::string(63, 'x') + "\n               xxxxxxx"))
        << "a wrapped line has one time";
    press(m, "/?\n");
    EXPECT_THAT(screen(m), HasSubstr("not found")) << "only the output is searched";
    press(m, "t");
    EXPECT_THAT(log_rows(m), HasSubstr("\none\n"));
    press(m, "to");
    bytes.stream = Stream::err;
    update(m, bytes);
    EXPECT_THAT(log_rows(m), HasSubstr("stderr of run 100")) << "also of the other stream";
    EXPECT_THAT(log_rows(m), HasSubstr(short_moment_text(second) + " one\n"));
}

TEST(Update, AdmitsThatTheTimesOfALogAreUnknown)
{
    Model m = model(1);
    press(m, "\n");
    update(m, LogBytes{"key0", Stream::out, "old\n", true, 0, ""});
    press(m, "t");
    EXPECT_THAT(screen(m), HasSubstr("the times of this log are unknown"));
    EXPECT_THAT(log_rows(m), HasSubstr("\n?              old"));
}

TEST(Update, SaysWhatHasHappenedToTheFile)
{
    Model m = model(1);
    press(m, "\n");
    update(m, LogBytes{"key0", Stream::out, "old\n", true, 0, ""});
    update(m, LogBytes{"key0", Stream::out, "new\n", true, 0, "", "the file was replaced"});
    EXPECT_THAT(log_rows(m), HasSubstr("[the file was replaced]\nnew\n"));
    press(m, "k");
    update(m, LogBytes{"key0", Stream::out, "", true, 0, "", "the file was truncated"});
    EXPECT_THAT(log_rows(m), HasSubstr("[the file was truncated], line 1 of 1 [more: G]\nnew\n"));
}

TEST(Update, ShowsWhyALogCanNoLongerBeRead)
{
    Model m = model(1);
    press(m, "\n");
    update(m, LogBytes{"key0", Stream::out, "old\n", true, 0, ""});
    update(m, LogBytes{"key0", Stream::out, "", false, 0, "out.log: Stale file handle"});
    EXPECT_THAT(log_rows(m), HasSubstr("[out.log: Stale file handle]\nold\n"));
    update(m, LogBytes{"key0", Stream::out, "", false, 0, ""});
    EXPECT_THAT(log_rows(m), AllOf(HasSubstr("\nold\n"), Not(HasSubstr("Stale"))));
}

TEST(Update, KeepsTheTimesOfTheLinesShown)
{
    Model m = model(1);
    press(m, "\nt");
    LogBytes bytes{"key0", Stream::out, "old\n", true, 0, ""};
    bytes.times = {{0, m.now}, {4, m.now}};
    update(m, bytes);
    const std::string shown = short_moment_text(m.now) + " old";
    EXPECT_THAT(log_rows(m), HasSubstr(shown));
    press(m, "f");
    LogBytes other{"key0", Stream::out, "new\n", true, 0, ""};
    other.times = {{0, {}}, {4, Time(std::chrono::seconds(5))}};
    update(m, other);
    EXPECT_THAT(log_rows(m), AllOf(HasSubstr("more: G"), HasSubstr(shown)));
}

TEST(Update, ShowsOnlyTheRunsThatPassTheFilter)
{
    Model m = model(30);
    press(m, "jj/run1");
    EXPECT_EQ(m.shown.size(), 11U) << "while it is being typed";
    EXPECT_EQ(m.selected, "key1") << "the one before does not pass";
    EXPECT_THAT(screen(m), HasSubstr("11 of 30 with 'run1'; Esc: all"));
    EXPECT_THAT(screen(m), HasSubstr("only runs with: run1_"));
    press(m, "7\n");
    EXPECT_EQ(m.selected, "key17");
    update(m, PictureRead{picture(30)});
    EXPECT_THAT(screen(m), HasSubstr("1 of 30 with 'run17'"));
    press(m, "/x");
    EXPECT_THAT(screen(m), HasSubstr("no run has 'run17x' in its line; Esc: all"));
    EXPECT_TRUE(press(m, "\nx").empty()) << "there is none to stop";
    press(m, "\x1b");
    EXPECT_EQ(m.shown.size(), 30U);
    EXPECT_EQ(m.selected, "key17");
    press(m, "/nothing such\x1b");
    EXPECT_EQ(m.shown.size(), 30U) << "given up";
    for (const std::string from :
         {"1", "3", "3]", "3]]", "3]]]", "3F"}) { // GPUs, and the run's tabs
        m.log.reset();
        press(m, from + "/x7\n");
        EXPECT_FALSE(m.question) << from << ": the letters are no commands";
        EXPECT_EQ(m.list.filter, "x7") << from;
        EXPECT_EQ(m.panels.focus, Panel::runs);
        press(m, "\x1b");
    }
}

TEST(Update, FiltersByAllThatARunsLineTells)
{
    Model m = model(4);
    Picture next = picture(4);
    next.runs[2].state = "waiting: no GPU is free";
    update(m, PictureRead{next});
    press(m, "/GPU is\n");
    ASSERT_EQ(m.shown.size(), 1U);
    EXPECT_EQ(m.selected, "key2");
    for (RunRow& run : next.runs) {
        run.queue = "calibration";
    }
    next.runs[3].name = "broken";
    update(m, PictureRead{next});
    press(m, "/\x15"
             "br\n");
    EXPECT_EQ(m.shown.size(), 1U) << "the queue has these letters too, but may not be shown";
    press(m, "/\x15"
             "Cal\n");
    EXPECT_EQ(m.shown.size(), 0U);
    press(m, "/\x15"
             "cal\n");
    EXPECT_EQ(m.shown.size(), 4U) << "the beginning of its name";
}

TEST(Update, ARunThatWasStartedIsShownWhateverTheFilter)
{
    Model m = model(3);
    press(m, "/run1\n+-- sleep 9\n");
    update(m, started("key3"));
    update(m, PictureRead{picture(3)});
    EXPECT_EQ(m.selected, "key1");
    update(m, PictureRead{picture(4)});
    EXPECT_EQ(m.selected, "key3");
    EXPECT_EQ(m.shown.size(), 4U);
}

TEST(Update, TabGoesThroughThePanels)
{
    Model m = model(2);
    EXPECT_EQ(m.panels.focus, Panel::runs);
    press(m, "\t");
    EXPECT_EQ(m.panels.focus, Panel::run);
    press(m, "\t");
    EXPECT_EQ(m.panels.focus, Panel::gpus);
    update(m, Key{Special::back_tab, 0});
    EXPECT_EQ(m.panels.focus, Panel::run);
    press(m, "2");
    EXPECT_EQ(m.panels.focus, Panel::runs);
    press(m, "1\x1b");
    EXPECT_EQ(m.panels.focus, Panel::runs);
}

/// On the whole screen there is one panel: Tab goes through its tabs.
TEST(Update, TabGoesThroughTheTabsOfARunOnTheWholeScreen)
{
    Model m = model(2);
    press(m, "\n");
    EXPECT_EQ(m.panels.tab, Tab::log);
    EXPECT_TRUE(std::holds_alternative<CloseLog>(press(m, "\t")[0]));
    EXPECT_EQ(m.panels.tab, Tab::curves);
    press(m, "]][");
    EXPECT_EQ(m.panels.tab, Tab::gpus);
    EXPECT_TRUE(m.panels.full);
    press(m, "\x1b");
    EXPECT_EQ(m.panels.tab, Tab::facts) << "as before";
    EXPECT_FALSE(m.panels.full);
    EXPECT_EQ(m.panels.focus, Panel::runs);
}

TEST(Update, AnyPanelCanHaveTheWholeScreen)
{
    Model m = model(3);
    for (const char* panel : {"1", "2", "3"}) {
        press(m, panel);
        press(m, "F");
        const Areas areas = areas_of(m);
        EXPECT_EQ((areas.gpus.height > 0) + (areas.runs.height > 0) + (areas.run.height > 0), 1);
        press(m, "F");
        EXPECT_GT(areas_of(m).gpus.height, 0);
    }
    press(m, "2F3");
    EXPECT_FALSE(m.panels.full) << "another panel";
}

/// The log in the panel is always that of the selected run.
TEST(Update, TheLogInThePanelFollowsTheSelection)
{
    Model m = model(3);
    const auto opened = press(m, "3[[[2");
    EXPECT_EQ(std::get<OpenLog>(opened.back()).key, "key0");
    const auto next = press(m, "j");
    ASSERT_EQ(next.size(), 1U);
    EXPECT_EQ(std::get<OpenLog>(next[0]).key, "key1");
    update(m, LogBytes{"key0", Stream::out, "of the run before", true, 0, ""});
    EXPECT_THAT(screen(m), Not(HasSubstr("of the run before")));
}

/// Before Slurm has accepted it, a run has no job id.
TEST(Update, TheTitleOfALogHasTheIdThatItsRunGets)
{
    Model m = model(1);
    m.picture.runs[0].id = "dab545d4";
    press(m, "\n");
    EXPECT_THAT(screen(m), HasSubstr("stdout of run dab545d4 (run0)"));
    EXPECT_TRUE(update(m, PictureRead{picture(1)}).empty());
    EXPECT_THAT(screen(m), HasSubstr("stdout of run 100 (run0)"));
}

TEST(Update, SearchesTheLog)
{
    Model m = model(30);
    press(m, "/run17\n\n");
    std::string text = "first loss nan\n";
    for (int i = 0; i < 50; ++i) {
        text += "fine\n";
    }
    update(m, LogBytes{"key17", Stream::out, text, true, 0, ""});
    press(m, "/loss nan\n");
    EXPECT_THAT(screen(m), HasSubstr("first loss nan"));
    update(m, LogBytes{"key17", Stream::out, "Loss NaN\n", false, 0, ""});
    press(m, "G/loss nan\n");
    EXPECT_THAT(screen(m), HasSubstr("Loss NaN"));
    press(m, "/Loss nan\n");
    EXPECT_THAT(screen(m), HasSubstr("'Loss nan' not found"));
}

TEST(Update, MarksTheFoundTextInTheLog)
{
    Model m = model(1, {12, 62});
    press(m, "\n");
    update(m, LogBytes{"key0", Stream::out, "größe nan, loss NaN\nfine\n", true, 0, ""});
    press(m, "/nan\n");
    const auto reversed = [&](int row) {
        const Rect area = area_of_tab(m);
        const Canvas canvas = view(m);
        std::string text;
        for (int column = area.left; column < area.left + area.width; ++column) {
            text += canvas.at(area.top + row, column).style.reverse ? '#' : '.';
        }
        return text.substr(0, 20);
    };
    EXPECT_EQ(reversed(1), "......###.......###.");
    EXPECT_EQ(reversed(2), "....................");
    press(m, "tt");
    update(m, Resized{12, 24}); // truncated within a match
    press(m, "w");
    EXPECT_EQ(view(m).columns(), 24);
}

/// A pager may pass on anything it gets: a title, clipboard contents, a query to the terminal.
TEST(Update, GivesThePagerNothingThatATerminalObeys)
{
    Model m = model(2);
    EXPECT_EQ(commands(press(m, "p")), (std::vector<Strings>{{"logs", "--printable", "key0"}}));
}

TEST(IsIn, SmallLettersMeanBothCases)
{
    EXPECT_TRUE(is_in("CUDA error", "cuda"));
    EXPECT_TRUE(is_in("CUDA error", "CUDA"));
    EXPECT_FALSE(is_in("cuda error", "CUDA"));
    EXPECT_FALSE(is_in("cud", "cuda"));
}

TEST(Update, HasARunningRunSaveAndGoOn)
{
    Model shown = model(2);
    EXPECT_EQ(commands(press(shown, "S")), (std::vector<Strings>{{"save", "key0"}}));
    EXPECT_TRUE(commands(press(shown, "jS")).empty());
    EXPECT_THAT(screen(shown), HasSubstr("is not running"));
}

TEST(Update, ExemptsTheRunThatWasSelected)
{
    Model shown = model(2);
    EXPECT_EQ(commands(press(shown, "iwaits for the 'microscope\n")),
              (std::vector<Strings>{{"exempt", "key0", "--reason", "waits for the 'microscope"}}));
    press(shown, "ji");
    EXPECT_THAT(screen(shown), HasSubstr("has ended already"));
}

TEST(Update, TriesOutWhatIsBeingTyped)
{
    Model shown = model(1);
    const auto effects = press(shown, "+-t 2h 'my train.py'");
    std::vector<Strings> tried;
    for (const Effect& effect : effects) {
        if (const auto* attempt = std::get_if<Try>(&effect)) {
            tried.push_back(attempt->arguments);
        }
    }
    EXPECT_EQ(tried.front(), (Strings{"run", "--detach", "--dry-run", "-"}));
    EXPECT_EQ(tried.back(), (Strings{"run", "--detach", "--dry-run", "-t", "2h", "my train.py"}));
    EXPECT_TRUE(commands(effects).empty()); // nothing is started
    update(shown, Tried{{"run", "--detach", "--dry-run", "-t", "2h"}, {"something else", false}});
    EXPECT_THAT(screen(shown), Not(HasSubstr("something else"))); // the input has changed since
    update(shown, Tried{tried.back(), {"would start my train.py\nqueue: gpu\n", false}});
    EXPECT_THAT(screen(shown), HasSubstr("would start my train.py"));
    EXPECT_THAT(screen(shown), HasSubstr("queue: gpu"));
    press(shown, "x");
    EXPECT_THAT(screen(shown), Not(HasSubstr("would start my train.py")));
}

TEST(Update, NothingIsTriedWhileAQuoteIsOpen)
{
    Model shown = model(1);
    press(shown, "+");
    EXPECT_TRUE(press(shown, "'").empty());
    press(shown, "\x1b");
    update(shown, Tried{{"run", "--detach", "--dry-run"}, {"too late", true}});
    EXPECT_THAT(screen(shown), Not(HasSubstr("too late")));
}

TEST(Update, ShowsAllThatACommandHasSaid)
{
    Model shown = model(1, {12, 40});
    update(shown,
           Done{"run 7 can't be extended: " + std::string(60, 'x') + " ask the operators", true});
    EXPECT_THAT(screen(shown), HasSubstr("run 7 can't be extended"));
    EXPECT_THAT(screen(shown), HasSubstr("operators"));
    update(shown, Done{std::string(4000, 'y'), true});
    EXPECT_THAT(screen(shown), HasSubstr("gpuq local")); // not more than half of the screen
}

TEST(RunsInDetail, AreTheSelectedRunAndThoseInTheList)
{
    Model m = model(30);
    press(m, "jj");
    const auto keys = runs_in_detail(m);
    EXPECT_EQ(keys.front(), "key2");
    EXPECT_EQ(keys[1], "key0");
    EXPECT_LT(keys.size(), 15U) << "no run that is not visible";
    press(m, "\n");
    EXPECT_THAT(runs_in_detail(m), testing::IsEmpty()) << "its log covers them";
    press(m, "\t");
    EXPECT_EQ(runs_in_detail(m), (Strings{"key2"}));
    press(m, "\x1b?");
    EXPECT_THAT(runs_in_detail(m), testing::IsEmpty());
}

TEST(RunsInDetail, AreThoseBelowTheHeadingsOfGroups)
{
    Model m = model(60);
    Picture made = picture(60);
    for (std::size_t i = 0; i < made.runs.size(); ++i) {
        made.runs[i].name = fmt::format("group{}-1", static_cast<char>('a' + i / 3));
    }
    update(m, PictureRead{made});
    press(m, "bG");
    const std::string last = screen(m);
    for (const std::string& key : runs_in_detail(m)) {
        EXPECT_THAT(last, HasSubstr(fmt::format(" {} ", 100 + std::stoi(key.substr(3)))));
    }
    EXPECT_GT(runs_in_detail(m).size(), 3U);
}

Detail detail_of(const std::string& key, double loss)
{
    Detail detail;
    detail.key = key;
    detail.loss = loss;
    detail.facts = {"progress: step 2 of 4"};
    Curve curve{"loss", "", {}, true};
    for (int i = 0; i < 1000; ++i) {
        curve.dots.push_back({static_cast<double>(i), {}, loss});
    }
    detail.curves = {curve, {"acc", "", curve.dots, true}};
    return detail;
}

/// 10,000 runs with all their curves would need gigabytes.
TEST(Update, KeepsOnlyASparklineOfRunsThatAreNotSelected)
{
    Model m = model(3);
    update(m, DetailRead{detail_of("key0", 1)});
    update(m, DetailRead{detail_of("key1", 2)});
    EXPECT_EQ(m.details.at("key0").curves.size(), 2U);
    EXPECT_EQ(m.details.at("key1").curves.size(), 1U);
    EXPECT_LE(m.details.at("key1").curves[0].dots.size(), 64U);
    press(m, "j");
    EXPECT_EQ(m.details.at("key0").curves.size(), 1U);
    Picture next = picture(1);
    update(m, PictureRead{next});
    EXPECT_EQ(m.details.size(), 1U) << "of runs that are gone nothing";
}

TEST(Update, SortsByWhatIsKnownAndPutsTheUnknownLast)
{
    Model m = model(4);
    update(m, DetailRead{detail_of("key2", 0.1)});
    update(m, DetailRead{detail_of("key1", 0.3)});
    press(m, "oooo");
    EXPECT_EQ(m.list.sort, SortBy::loss);
    EXPECT_EQ(m.shown, (std::vector<std::size_t>{2, 1, 0, 3}));
    EXPECT_THAT(screen(m), HasSubstr("by loss"));
    press(m, "O");
    EXPECT_EQ(m.shown, (std::vector<std::size_t>{1, 2, 0, 3}));
    EXPECT_EQ(m.selected, "key0") << "sorting moves no selection";
    press(m, "ooO");
    EXPECT_EQ(m.list.sort, SortBy::active);
    EXPECT_EQ(m.shown, (std::vector<std::size_t>{0, 2, 1, 3}));
}

/// A training of days stays in view, however many short runs begin and end.
TEST(Update, ShowsActiveRunsFirstAndThenThoseThatEndedLast)
{
    Model m;
    EXPECT_EQ(m.list.sort, SortBy::active);
    Picture made = picture(6); // 0, 2 and 4 are active
    made.runs[3].ends = Time(std::chrono::seconds(900));
    made.runs[5].ends = Time(std::chrono::seconds(910));
    update(m, PictureRead{made});
    EXPECT_EQ(m.shown, (std::vector<std::size_t>{0, 2, 4, 5, 3, 1}));
    EXPECT_EQ(m.selected, "key0");
    press(m, "O");
    EXPECT_EQ(m.shown, (std::vector<std::size_t>{1, 3, 5, 4, 2, 0}));
}

TEST(Update, ALossThatIsNotANumberIsUnknown)
{
    Model m = model(40);
    for (int i = 0; i < 40; ++i) {
        const double loss = i % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : 40.0 - i;
        update(m, DetailRead{detail_of(fmt::format("key{}", i), loss)});
    }
    press(m, "oooo");
    ASSERT_EQ(m.list.sort, SortBy::loss);
    std::vector<std::size_t> order;
    for (std::size_t i = 40; i-- > 0;) {
        if (i % 3 != 0) {
            order.push_back(i);
        }
    }
    for (std::size_t i = 0; i < 40; i += 3) {
        order.push_back(i);
    }
    EXPECT_EQ(m.shown, order);
}

/// The list would otherwise be in the order of the few runs that happened to be visible before.
TEST(Update, ReadsAllRunsBeforeItSortsByTheirLoss)
{
    Model m = model(60);
    press(m, "oooo");
    Strings keys = runs_in_detail(m);
    EXPECT_EQ(keys.size(), 60U);
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
    EXPECT_THAT(screen(m), HasSubstr("by loss, 60 not read yet"));
    for (int i = 0; i < 60; ++i) {
        update(m, DetailRead{detail_of(fmt::format("key{}", i), 100 - i)});
    }
    EXPECT_THAT(screen(m), AllOf(HasSubstr("by loss"), Not(HasSubstr("not read yet"))));
    press(m, "g");
    EXPECT_EQ(m.selected, "key59");
    EXPECT_EQ(runs_in_detail(m).size(), 60U);
    press(m, "oo");
    EXPECT_LT(runs_in_detail(m).size(), 15U) << "newest first needs no values";
}

TEST(Update, GroupsRunsByNameAndHidesTheEndedOnes)
{
    Model m = model(6);
    Picture next = picture(6);
    for (std::size_t i = 0; i < 6; ++i) {
        next.runs[i].name = (i % 3 == 0 ? "other-" : "lr sweep ") + std::to_string(i);
    }
    update(m, PictureRead{next});
    press(m, "b");
    EXPECT_THAT(screen(m), HasSubstr("other: 1 running, 1 done"));
    EXPECT_THAT(screen(m), HasSubstr("lr sweep: 2 running, 2 done"));
    EXPECT_EQ(m.shown, (std::vector<std::size_t>{0, 3, 1, 2, 4, 5}));
    press(m, "z");
    EXPECT_EQ(m.shown, (std::vector<std::size_t>{0, 2, 4}));
    EXPECT_THAT(screen(m), HasSubstr("3 ended hidden"));
}

TEST(Update, ASingleRunHasNoHeading)
{
    Model m = model(5);
    Picture next = picture(5);
    const char* const names[] = {"a-0", "single", "a-1", "lone-9", "b 1"};
    for (std::size_t i = 0; i < 5; ++i) {
        next.runs[i].name = names[i];
    }
    update(m, PictureRead{next});
    press(m, "b");
    EXPECT_EQ(m.shown, (std::vector<std::size_t>{0, 2, 1, 3, 4}));
    const std::string text = screen(m);
    for (const char* const line : {"a: 2 running", " 100    a-0 ", " 102    a-1 ", " 101  single ",
                                   " 103  lone-9 ", " 104  b 1 "}) {
        EXPECT_THAT(text, HasSubstr(line));
    }
    for (const char* const heading : {"single:", "lone:", "b:"}) {
        EXPECT_THAT(text, Not(HasSubstr(heading)));
    }
}

TEST(GroupOf, LeavesOutANumberAtTheEnd)
{
    EXPECT_EQ(group_of("train-12"), "train");
    EXPECT_EQ(group_of("lr_0.001"), "lr_0");
    EXPECT_EQ(group_of("train"), "train");
    EXPECT_EQ(group_of("42"), "42");
    EXPECT_EQ(group_of(""), "");
    EXPECT_EQ(group_of("-7"), "-7");
}

TEST(Update, StopsAllMarkedRunsAfterNamingThem)
{
    Model m = model(6);
    press(m, "  j x");
    EXPECT_EQ(m.marks, (std::set<std::string>{"key0", "key1", "key3"}));
    EXPECT_THAT(screen(m), HasSubstr("stop run 100 (run0), 1 GPU, running for 47 h? y/N"))
        << "the only one that has not ended";
    press(m, "n");
    press(m, "gjj x");
    EXPECT_THAT(screen(m), HasSubstr("stop 2 runs: 100 102? y/N"));
    EXPECT_EQ(commands(press(m, "y")), (std::vector<Strings>{{"stop", "key0", "key2"}}));
    press(m, "\x1b");
    EXPECT_TRUE(m.marks.empty());
}

TEST(Update, MarksDoNotCountInThePanelOfARun)
{
    Model m = model(6);
    m.picture.runs[4].saves = true;
    press(m, "  jj"); // marks 0 and 1
    ASSERT_EQ(m.selected, "key4");
    press(m, "\nx");
    EXPECT_THAT(screen(m), HasSubstr("stop run 104 (run4), 1 GPU"));
    EXPECT_EQ(commands(press(m, "y")), (std::vector<Strings>{{"stop", "key4"}}));
    EXPECT_EQ(commands(press(m, "sy")), (std::vector<Strings>{{"stop", "--checkpoint", "key4"}}));
    press(m, "\x1bj\nx");
    EXPECT_THAT(screen(m), HasSubstr("run 105 has ended already"));
}

TEST(Update, ComparesMarkedRuns)
{
    Model m = model(4);
    EXPECT_TRUE(press(m, " c").empty());
    EXPECT_THAT(screen(m), HasSubstr("mark two or more runs"));
    const auto effects = press(m, " c");
    ASSERT_EQ(effects.size(), 1U);
    const Strings keys = std::get<Compare>(effects[0]).keys;
    EXPECT_EQ(keys, (Strings{"key0", "key1"}));
    EXPECT_THAT(screen(m), HasSubstr("reading"));
    Comparison read;
    read.keys = keys;
    read.names = {"100 (run0)", "101 (run1)"};
    read.metrics = {{"loss", {{"loss", "", {{0, {}, 4.0}, {1, {}, 2.0}}, true}, {}}}};
    report::Table table;
    table.columns = {{"setting", "SETTING"}, {"100", "100"}, {"101", "101"}};
    table.rows = {{"--lr", "0.1", "0.3"}};
    read.tables = {table};
    update(m, ComparisonRead{read});
    EXPECT_THAT(screen(m), HasSubstr("100 (run0) loss 2"));
    EXPECT_THAT(screen(m), HasSubstr("--lr     0.1  0.3"));
    EXPECT_THAT(screen(m), HasSubstr("as of " + moment_text(m.now, m.now)));
    read.keys = {"others"};
    read.names = {"of an earlier request"};
    update(m, ComparisonRead{read});
    EXPECT_THAT(screen(m), Not(HasSubstr("earlier")));
    press(m, "\x1b");
    EXPECT_FALSE(m.comparison);
}

TEST(Update, TellsWhatIsNotCompared)
{
    Model m = model(4);
    m.picture.runs[1].plain = true;
    m.picture.runs[3].sweep = std::make_shared<const Sweep>();
    EXPECT_TRUE(press(m, "  c").empty());
    EXPECT_THAT(screen(m), HasSubstr("mark two or more runs"));
    const auto effects = press(m, "  c");
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_EQ(std::get<Compare>(effects[0]).keys, (Strings{"key0", "key2"}));
    EXPECT_THAT(screen(m), HasSubstr("plain jobs and sweeps are not compared with runs"));
}

TEST(Update, StartsARunAgainWithItsArgumentsToEdit)
{
    Model m = model(2);
    const auto tried = press(m, "A");
    EXPECT_THAT(screen(m),
                AllOf(HasSubstr("start run 100 (run0) again"), HasSubstr("-- a.py --lr 1_")));
    EXPECT_EQ(std::get<Try>(tried[0]).arguments,
              (Strings{"again", "--detach", "--dry-run", "--program", "key0", "--", "a.py", "--lr",
                       "1"}));
    EXPECT_EQ(commands(press(m, "e-3\n")),
              (std::vector<Strings>{
                  {"again", "--detach", "--program", "key0", "--", "a.py", "--lr", "1e-3"}}));
}

TEST(Update, ExecutesATypedCommand)
{
    Model m = model(1);
    const auto quick = press(m, ":stop 100\n");
    EXPECT_EQ(commands(quick), (std::vector<Strings>{{"stop", "100"}}));
    EXPECT_FALSE(std::get<Command>(quick[0]).on_terminal);
    const auto shown = press(m, ":gpuq usage --days 2\n");
    EXPECT_EQ(commands(shown), (std::vector<Strings>{{"usage", "--days", "2"}}));
    EXPECT_TRUE(std::get<Command>(shown[0]).on_terminal && std::get<Command>(shown[0]).pauses);
    EXPECT_TRUE(press(m, ":gpuq\n").empty());
    EXPECT_TRUE(press(m, ":  \n").empty());
    EXPECT_TRUE(press(m, ":'\n").empty());
    EXPECT_TRUE(m.prompt->answer.failed);
}

TEST(Update, AnUnknownCommandDoesNotTakeTheTerminal)
{
    Model m = model(1);
    m.commands.verbs = {"run", "usage", "ls", "top"};
    EXPECT_TRUE(commands(press(m, ":usgae --days 2\n")).empty());
    EXPECT_THAT(screen(m),
                AllOf(HasSubstr("\nno command 'usgae' (did you mean 'usage'?); help lists them\n"),
                      HasSubstr(":gpuq usgae --days 2_")));
    press(m, "\x1b");
    EXPECT_FALSE(m.prompt);
    EXPECT_TRUE(commands(press(m, ":top\n")).empty());
    EXPECT_THAT(screen(m), HasSubstr("this is gpuq top"));
    press(m, "\x1b");
    EXPECT_EQ(commands(press(m, ":usage\n:--help\n:top --once\n")),
              (std::vector<Strings>{{"usage"}, {"--help"}, {"top", "--once"}}));
}

TEST(Update, ALineThatCanNotBeReadStaysOpen)
{
    Model m = model(1);
    press(m, "+-- a.py 'x");
    EXPECT_THAT(screen(m), HasSubstr("is never closed in: ")) << "there is nothing to wait for";
    EXPECT_TRUE(commands(press(m, "\n")).empty());
    EXPECT_THAT(screen(m), AllOf(HasSubstr("is never closed in: "), HasSubstr("-- a.py 'x_")));
    EXPECT_EQ(commands(press(m, "'\n")),
              (std::vector<Strings>{{"run", "--detach", "--", "a.py", "x"}}));
}

TEST(Update, TheLineOfAFailedCommandIsOpenedAgain)
{
    Model m = model(1);
    const Strings command = commands(press(m, "+-t 9d a.py\n")).at(0);
    update(m, Done{"the policy allows 2 h", true, command});
    EXPECT_THAT(screen(m), AllOf(HasSubstr("-t 9d a.py_"), HasSubstr("the policy allows 2 h")));
    press(m, "\x1b");
    press(m, "+-t 9d a.py\nj");
    update(m, Done{"the policy allows 2 h", true, command});
    EXPECT_FALSE(m.commands.form) << "the user has done something else since";
    press(m, ":stop 7\n");
    update(m, Done{"another one has failed", true, {"stop", "8"}});
    EXPECT_FALSE(m.prompt);
}

TEST(Update, PastedTextIsNoKeys)
{
    Model m = model(3);
    EXPECT_TRUE(update(m, Paste{U"xy_train = load()\n"}).empty());
    EXPECT_FALSE(m.question);
    EXPECT_THAT(screen(m), HasSubstr("pasted text is ignored"));
    press(m, "x");
    EXPECT_TRUE(update(m, Paste{U"y"}).empty());
    EXPECT_TRUE(m.question) << "not an answer";
    press(m, "n+-t 2h .py");
    for (int i = 0; i < 3; ++i) {
        update(m, Key{Special::left, 0});
    }
    const auto effects = update(m, Paste{U"größe\n\x1b[2J\r\n"});
    EXPECT_EQ(m.commands.form->fields[0].typed, "-t 2h größe  [2J.py");
    EXPECT_EQ(std::get<Try>(effects.at(0)).arguments.back(), "[2J.py");
    press(m, "\x1b/");
    update(m, Paste{U"run1\n"});
    EXPECT_EQ(m.list.filter, "run1");
    EXPECT_TRUE(m.prompt) << "a line break does not end the line";
}

TEST(Update, FetchesLinesEnteredBefore)
{
    Model m = model(1);
    const auto up = [&] { update(m, Key{Special::up, 0}); };
    const auto down = [&] { update(m, Key{Special::down, 0}); };
    press(m, ":first\n:second\n/run\n:new");
    up();
    EXPECT_EQ(m.prompt->typed, "second");
    up();
    up();
    EXPECT_EQ(m.prompt->typed, "first");
    EXPECT_EQ(m.prompt->cursor, 5U);
    down();
    down();
    down();
    EXPECT_EQ(m.prompt->typed, "new");
    press(m, "\x1b/\x15");
    up();
    EXPECT_EQ(m.list.filter, "run");
    up();
    EXPECT_EQ(m.list.filter, "run") << "no other filter before";
}

TEST(Update, EscRestoresTheFilterBefore)
{
    Model m = model(20);
    press(m, "/run1\n/7\x1b");
    EXPECT_EQ(m.list.filter, "run1");
}

TEST(Update, AFailedCommandStaysInViewForAWhile)
{
    Model m = model(4);
    press(m, "xy");
    EXPECT_THAT(screen(m), HasSubstr("..."));
    press(m, "j");
    EXPECT_THAT(screen(m), HasSubstr("1 command running  Tab"));
    press(m, "jxy");
    press(m, "j");
    EXPECT_THAT(screen(m), HasSubstr("2 commands running"));
    update(m, Done{"run 100 can't be stopped\nmore", true, {"stop", "key0"}});
    EXPECT_THAT(screen(m), AllOf(HasSubstr("run 100 can't be stopped"), HasSubstr("more")));
    update(m, Done{"stopping run 102", false, {"stop", "key2"}});
    press(m, "k");
    EXPECT_THAT(screen(m), HasSubstr("✗ run 100 can't be stopped"));
    EXPECT_THAT(screen(m), Not(HasSubstr("running  Tab")));
    update(m, Tick{m.now + std::chrono::seconds(21)});
    EXPECT_THAT(screen(m), Not(HasSubstr("can't be stopped")));
    update(m, Done{"run 104 can't be stopped", true, {"stop", "key4"}});
    press(m, "\x1b");
    EXPECT_THAT(screen(m), Not(HasSubstr("can't be stopped"))) << "Esc: the user has read it";
}

TEST(Update, CompletesACommand)
{
    Model m = model(1);
    const auto asked = press(m, ":sh\t");
    EXPECT_EQ(std::get<Complete>(asked.back()).arguments, (Strings{"sh"}));
    update(m, Completed{{"sh"}, {"shell", "show"}});
    EXPECT_EQ(m.prompt->typed, "sh");
    EXPECT_THAT(screen(m), HasSubstr("shell  show"));
    press(m, "o\t");
    update(m, Completed{{"sho"}, {"show"}});
    EXPECT_EQ(m.prompt->typed, "show ");
    const auto next = press(m, "\t");
    EXPECT_EQ(std::get<Complete>(next.back()).arguments, (Strings{"show", ""}));
    update(m, Completed{{"sho"}, {"shoot "}});
    EXPECT_EQ(m.prompt->typed, "show ") << "the answer to an earlier question";
    press(m, "\x1b+tra\t");
    update(m, Completed{{"run", "--detach", "tra"}, {"training/"}});
    EXPECT_EQ(m.commands.form->fields[0].typed, "training/") << "a path may continue";
}

TEST(Update, CompletesANameWithBlanksAsOneArgument)
{
    Model m = model(1);
    press(m, "+-- my\t");
    update(m, Completed{{"run", "--detach", "--", "my"}, {"my train's.py"}});
    EXPECT_EQ(commands(press(m, "x\n")),
              (std::vector<Strings>{{"run", "--detach", "--", "my train's.py", "x"}}));
    press(m, "+-- my\t");
    update(m, Completed{{"run", "--detach", "--", "my"}, {"my runs/"}});
    EXPECT_EQ(commands(press(m, "a.py\n")),
              (std::vector<Strings>{{"run", "--detach", "--", "my runs/a.py"}}));
}

TEST(Update, ReportsStartsAndEndsThatItHasSeen)
{
    Model m = model(2);
    Picture next = picture(2);
    next.runs[0].active = next.runs[0].running = false;
    next.runs[0].state = "failed";
    next.runs[0].mark = RunMark::failed;
    const auto effects = update(m, PictureRead{next});
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_EQ(std::get<Notify>(effects[0]),
              (Notify{"run 100 (run0): failed", RunMark::failed, "key0", "100"}));
    EXPECT_THAT(screen(m), HasSubstr("run 100 (run0): failed"));
    EXPECT_TRUE(update(m, PictureRead{next}).empty()) << "once";
    update(m, Tick{m.now + std::chrono::seconds(9)});
    EXPECT_THAT(screen(m), Not(HasSubstr("run 100 (run0): failed")));
    next.runs[1].active = next.runs[1].running = true;
    next.runs[1].mark = RunMark::running;
    EXPECT_EQ(std::get<Notify>(update(m, PictureRead{next})[0]),
              (Notify{"run 101 (run1) has started", RunMark::running, "key1", "101"}));
}

/// An array of 500 tasks that ends would ring 500 times.
TEST(Update, ReportsManyEventsAtOnceAsOne)
{
    Model m = model(12);
    Picture next = picture(12);
    for (const std::size_t run : {0, 2, 4, 6}) {
        next = with_end_of(next, run);
        next.runs[run].mark = run == 0 ? RunMark::failed : RunMark::done;
    }
    next.runs[1].active = next.runs[1].running = true;
    next.runs[1].mark = RunMark::running;
    const auto effects = update(m, PictureRead{next});
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_EQ(std::get<Notify>(effects[0]), (Notify{"5 runs: 1 failed, 3 done, 1 started",
                                                    RunMark::failed, "", "100 101 102 104 106"}));
    EXPECT_THAT(screen(m), HasSubstr("5 runs: 1 failed, 3 done, 1 started"));
}

TEST(Update, JumpsToErrorsInTheLog)
{
    Model m = model(1);
    press(m, "\n");
    std::string text = "Traceback (most recent call last):\n";
    for (int i = 0; i < 50; ++i) {
        text += i == 25 ? "RuntimeError: CUDA error\n" : "fine\n";
    }
    update(m, LogBytes{"key0", Stream::out, text, true, 0, ""});
    press(m, "e");
    EXPECT_THAT(log_rows(m), HasSubstr("RuntimeError"));
    press(m, "E");
    EXPECT_THAT(log_rows(m), HasSubstr("Traceback"));
}

TEST(IsErrorLine, IsNoMetricOfThatName)
{
    for (const char* line : {"RuntimeError: CUDA error", "error: no such file", "a.c:3: error: x",
                             "ERROR 12:03 failed", "Killed", "torch.OutOfMemoryError: CUDA"}) {
        EXPECT_TRUE(is_error_line(line, "")) << line;
    }
    for (const char* line :
         {"step 3 train error: 0.12", "val_error: 0.3", "no errors", "loss 0.2"}) {
        EXPECT_FALSE(is_error_line(line, "")) << line;
    }
}

TEST(Update, ShowsTheChosenCurvesInOneChart)
{
    Model m = model(1);
    Detail detail = detail_of("key0", 1);
    detail.curves.push_back({"lr", "", detail.curves[0].dots, true});
    const Time begin(std::chrono::seconds(900));
    detail.curves.push_back({"GPUs busy", "%", {{0, begin, 50}, {9, m.now, 60}}, false});
    update(m, DetailRead{detail});
    press(m, "\n\t jj ");
    EXPECT_THAT(screen(m), HasSubstr("● ")) << "its mark";
    press(m, "\n");
    EXPECT_THAT(screen(m), AllOf(HasSubstr("loss 1  "), HasSubstr("lr 1  "), Not(HasSubstr("acc")),
                                 Not(HasSubstr("GPUs busy"))));
    press(m, "\njj \n");
    EXPECT_THAT(screen(m), AllOf(HasSubstr("loss 1  ━ lr 1"), HasSubstr("GPUs busy 60 %")))
        << "those over time apart";
    press(m, "\n k kk \n");
    EXPECT_THAT(screen(m), AllOf(HasSubstr("loss 1"), Not(HasSubstr("lr"))))
        << "the selected one if none is chosen";
}

TEST(Update, MovesAndZoomsInCurves)
{
    Model m = model(1);
    update(m, DetailRead{detail_of("key0", 1)});
    press(m, "\n\tj\n");
    EXPECT_EQ(m.charts.selected, 1U);
    EXPECT_TRUE(m.charts.single);
    press(m, "zLtm");
    EXPECT_EQ(m.charts.view, (ChartView{true, true, 0.6, 0.25, 0.75, {}}));
    press(m, ">>>");
    EXPECT_DOUBLE_EQ(m.charts.view.to, 1.0);
    press(m, "lll");
    EXPECT_NEAR(*m.charts.view.cursor, 0.03, 1e-9);
    press(m, "ZZZZ0mmmLt");
    EXPECT_EQ(m.charts.view, ChartView{});
}

Picture with_gpus()
{
    Picture made = picture(2);
    made.holders = {{"key1", "101", "run1", true, {}, {}}, {"", "77", "ada", false, {}, {}}};
    GpuModel group;
    group.name = "k80";
    group.total = 4;
    group.free = 2;
    group.nodes = {{"n0", {{Gpu::State::mine, 0, 0.5, 0.25}, {Gpu::State::others, 1, {}, {}}}},
                   {"n1", {{Gpu::State::free, -1, {}, {}}, {Gpu::State::down, -1, {}, {}}}}};
    made.gpus = {group};
    return made;
}

TEST(Update, MovesThroughTheGpusAndGoesToTheRunThatHoldsOne)
{
    Model m = model(2);
    update(m, PictureRead{with_gpus()});
    press(m, "1");
    EXPECT_THAT(screen(m), HasSubstr("n0: run 101 (run1), 50 % busy, memory 25 %"));
    press(m, "l");
    EXPECT_THAT(screen(m), HasSubstr("n0: ada, job 77"));
    press(m, "\n");
    EXPECT_EQ(m.panels.focus, Panel::gpus);
    press(m, "G");
    EXPECT_THAT(screen(m), HasSubstr("n1: the node accepts no jobs"));
    press(m, "g\n");
    EXPECT_EQ(m.selected, "key1");
    EXPECT_EQ(m.panels.focus, Panel::runs);
}

TEST(Update, TheMouseSelectsOpensAndScrolls)
{
    Model m = model(30);
    update(m, PictureRead{with_gpus()});
    update(m, PictureRead{picture(30)});
    const Areas areas = areas_of(m);
    const int row = areas.runs.top + 2 + 3;
    update(m, Mouse{Mouse::Action::click, row, 5});
    EXPECT_EQ(m.selected, "key3");
    update(m, Mouse{Mouse::Action::wheel_down, row, 5});
    EXPECT_EQ(m.selected, "key6");
    update(m, Mouse{Mouse::Action::wheel_up, row, 5});
    update(m, Mouse{Mouse::Action::click, areas.run.top, areas.run.left + 40});
    EXPECT_EQ(m.panels.focus, Panel::run);
    const std::string there = run_at(m, areas.runs, row);
    update(m, Mouse{Mouse::Action::double_click, row, 5});
    EXPECT_TRUE(m.panels.full);
    EXPECT_EQ(m.selected, there);
    for (int line = -1; line < 30; ++line) { // anywhere, also outside
        for (int column = -1; column < 90; column += 7) {
            for (const auto action :
                 {Mouse::Action::click, Mouse::Action::double_click, Mouse::Action::wheel_up,
                  Mouse::Action::wheel_down, Mouse::Action::move}) {
                update(m, Mouse{action, line, column});
                (void)view(m);
            }
        }
    }
}

TEST(Update, ThePointerShowsWhoHoldsAGpu)
{
    Model m = model(30);
    update(m, PictureRead{with_gpus()});
    const Rect panel = areas_of(m).gpus;
    std::pair<int, int> place;
    for (int row = panel.top; row < panel.top + panel.height; ++row) {
        for (int column = 0; column < 80; ++column) {
            place = gpu_at(m, panel, row, column) == 1U ? std::pair(row, column) : place;
        }
    }
    ASSERT_NE(place.first, 0);
    m.answer.message = "stays";
    const std::size_t before = m.gpu;
    const Panel focus = m.panels.focus;
    update(m, Mouse{Mouse::Action::move, place.first, place.second});
    EXPECT_THAT(screen(m), HasSubstr("n0: ada, job 77"));
    EXPECT_EQ(m.gpu, before);
    EXPECT_EQ(m.panels.focus, focus);
    EXPECT_EQ(m.answer.message, "stays");
    update(m, Mouse{Mouse::Action::move, areas_of(m).runs.top + 2, 5});
    EXPECT_THAT(screen(m), Not(HasSubstr("n0: ada, job 77")));
    update(m, Mouse{Mouse::Action::move, place.first, place.second});
    press(m, "j"); // keys show what they select
    EXPECT_THAT(screen(m), Not(HasSubstr("n0: ada, job 77")));
}

TEST(Update, HelpHasPagesOnASmallScreen)
{
    Model shown = model(1, {10, 60});
    press(shown, "?");
    EXPECT_THAT(screen(shown), HasSubstr("any key: more"));
    EXPECT_THAT(screen(shown), Not(HasSubstr("runs are not affected")));
    for (int i = 0; i < 3; ++i) {
        press(shown, " ");
    }
    EXPECT_THAT(screen(shown), HasSubstr("runs are not affected"));
    EXPECT_THAT(screen(shown), HasSubstr("any key: back"));
    press(shown, " ");
    EXPECT_FALSE(shown.help);
    press(shown, "?");
    press(shown, "\x1b");
    EXPECT_FALSE(shown.help);
}

TEST(Update, HelpHasTheKeysOfThePanelInUse)
{
    struct Page {
        std::string keys, title, has, lacks;
    };
    for (const Page& page :
         std::vector<Page>{{"1", "GPUs", "a GPU to the left or right", "search the log"},
                           {"2", "Runs", "compare the marked runs", "search the log"},
                           {"2\n", "Log", "search the log", "compare the marked runs"},
                           {"2\n]", "Curves", "smooth more", "search the log"},
                           {"2\n]]", "Run", "previous or next tab", "smooth more"}}) {
        Model m = model(3, {60, 100});
        press(m, page.keys + "?");
        EXPECT_THAT(screen(m), HasSubstr("keys of gpuq top: " + page.title + "\n"));
        EXPECT_THAT(screen(m), HasSubstr(page.has)) << page.title;
        EXPECT_THAT(screen(m), Not(HasSubstr(page.lacks))) << page.title;
        EXPECT_THAT(screen(m), HasSubstr("runs are not affected")) << page.title;
    }
}

TEST(Update, APlainJobIsStoppedByItsIdAndRefusesWhatNeedsASupervisor)
{
    Picture shown = picture(1);
    shown.runs[0].plain = true;
    shown.runs[0].key = "23";
    shown.runs[0].id = "20_3";
    Model plain = model(0);
    EXPECT_TRUE(update(plain, PictureRead{shown}).empty());
    for (const char* key : {"a", "s", "S", "e", "i"}) {
        EXPECT_TRUE(press(plain, key).empty()) << key;
        EXPECT_THAT(plain.answer.message, HasSubstr("is a plain Slurm job")) << key;
    }
    EXPECT_EQ(commands(press(plain, "xy")), std::vector<Strings>({{"stop", "20_3"}}));
    press(plain, "\n");
    EXPECT_THAT(screen(plain), HasSubstr("stdout of job 20_3 (run0)"));
}

} // namespace
} // namespace gpuq::tui
