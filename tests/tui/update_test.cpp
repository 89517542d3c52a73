// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/update.h"

#include "tui/view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace gpuq::tui {
namespace {

using testing::HasSubstr;
using testing::Not;
using Strings = std::vector<std::string>;

Picture picture(int runs)
{
    Picture made;
    made.cluster = "local";
    made.answer = "yes: 2 k80 in queue calibration (up to 2 h)";
    made.slurm_at = Time(std::chrono::seconds(995));
    made.gpus.columns = {{"model", "GPU"}, {"free", "FREE", report::Column::Align::right}};
    made.gpus.rows = {{"k80", "2"}};
    made.runs.columns = {{"id", "ID", report::Column::Align::right}, {"name", "NAME"}};
    for (int i = 0; i < runs; ++i) {
        RunRow row;
        row.key = "key" + std::to_string(i);
        row.id = std::to_string(100 + i);
        row.name = "run" + std::to_string(i);
        row.gpus = "1 GPU";
        row.active = row.running = i % 2 == 0;
        row.since = row.running ? "running for 47 h" : "";
        row.facts = {"runs on n0", "python3 train.py"};
        made.rows.push_back(row);
        made.runs.rows.push_back({row.id, row.name});
    }
    return made;
}

Model model(int runs, Resized size = {24, 80})
{
    Model made;
    made.size = size;
    made.now = Time(std::chrono::seconds(1000));
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

TEST(Update, SelectionIsHeldByTheRunAndNotByItsRow)
{
    Model m = model(4);
    EXPECT_EQ(m.selected, "key0");
    press(m, "jj");
    EXPECT_EQ(m.selected, "key2");
    Picture next = picture(4);
    next.rows.erase(next.rows.begin());
    next.runs.rows.erase(next.runs.rows.begin());
    update(m, PictureRead{next});
    EXPECT_EQ(m.selected, "key2");
    press(m, "kkkk");
    EXPECT_EQ(m.selected, "key1");
    press(m, "G");
    EXPECT_EQ(m.selected, "key3");
}

TEST(Update, ScrollsTheListOnlyAsFarAsTheSelectionNeeds)
{
    Model m = model(60);
    press(m, std::string(30, 'j'));
    const std::size_t first = m.first_row;
    EXPECT_GT(first, 0U);
    press(m, "k");
    EXPECT_EQ(m.selected, "key29");
    EXPECT_EQ(m.first_row, first);
    update(m, Resized{12, 80});
    EXPECT_THAT(screen(m), HasSubstr("run29"));
    press(m, std::string(29, 'k'));
    EXPECT_EQ(m.first_row, 0U);
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

/// The run in question is stopped, even if another row has moved under the cursor.
TEST(Update, TheQuestionKeepsItsRun)
{
    Model m = model(4);
    press(m, "x");
    Picture next = picture(4);
    next.rows.erase(next.rows.begin());
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
    for (const char* before : {"", "x", "e", "/", "?", "\n"}) {
        Model m = model(2);
        press(m, before);
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
    EXPECT_TRUE(commands(press(m, "+train.py\x1b")).empty());
    EXPECT_FALSE(m.prompt);
}

TEST(Update, EditsWhatIsBeingTyped)
{
    Model m = model(1);
    const auto special = [&](Special key) { update(m, Key{key, 0}); };
    press(m, "+ain.py -t 2h");
    special(Special::home);
    press(m, "tr");
    special(Special::right);
    special(Special::left);
    EXPECT_EQ(m.prompt->typed, "train.py -t 2h");
    EXPECT_THAT(screen(m), HasSubstr("gpuq run --detach train.py -t 2h\n"));
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

TEST(Update, SelectsTheRunThatWasStarted)
{
    Model m = model(3);
    press(m, "+train.py\n");
    update(m, PictureRead{picture(3)});
    EXPECT_EQ(m.selected, "key0");
    Picture next = picture(4);
    std::reverse(next.rows.begin(), next.rows.end());
    update(m, PictureRead{next});
    EXPECT_EQ(m.selected, "key3");
    press(m, "k+train.py\nk"); // and the user moves to another run
    const std::string selected = m.selected;
    update(m, PictureRead{picture(5)});
    EXPECT_EQ(m.selected, selected);
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
    Model m = model(1, {10, 40});
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
    EXPECT_THAT(screen(m), HasSubstr("line 0\n"));
}

/// Every row of a folded line can be reached, and each key moves by one row.
TEST(Update, ScrollsThroughFoldedLines)
{
    Model m = model(1, {10, 40});
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
        EXPECT_THAT(screen(m), HasSubstr(fmt::format("\n<{:02}>", i))) << i;
        EXPECT_THAT(screen(m), Not(HasSubstr(fmt::format("<{:02}>", i + 8)))) << i;
    }
    press(m, "kkk");
    EXPECT_THAT(screen(m), HasSubstr("\nfirst\n<00>"));
    press(m, "jj");
    EXPECT_THAT(screen(m), HasSubstr(")\n<01>"));
    press(m, "/<17>\n");
    EXPECT_THAT(screen(m), HasSubstr(")\n<17>"));
}

TEST(Update, StaysWhereOneHasStoppedHoweverMuchComes)
{
    Model m = model(1, {10, 40});
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
        const std::string text = screen(m);
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
    Model m = model(1, {10, 60});
    press(m, "\n");
    std::string text;
    for (int i = 0; i < 4999; ++i) { // plus one empty line
        text += fmt::format("line {}\n", i);
    }
    update(m, LogBytes{"key0", Stream::out, text, true, 0, ""});
    press(m, "g");
    EXPECT_THAT(screen(m), HasSubstr("stdout of run 100 (run0)\nline 0\n"));
    press(m, "G");
    update(m, LogBytes{"key0", Stream::out, "more\nand more\n", false, 0, ""});
    press(m, "g");
    EXPECT_THAT(screen(m), HasSubstr("stdout of run 100 (run0), the end of 48 kB; p: all\n"
                                     "more above: p or gpuq logs 100 shows it\n"
                                     "line 2\n"));
    press(m, "j");
    EXPECT_THAT(screen(m), HasSubstr("p: all\nline 3\n"));
    press(m, "G");
    update(m, LogBytes{"key0", Stream::out, text, true, 7'000'000, ""});
    EXPECT_THAT(screen(m), HasSubstr("the end of 7.0 MB; p: all\n"));
    press(m, "g");
    EXPECT_THAT(screen(m), HasSubstr("more above"));
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
    m.picture->rows[0].name = std::string(200, 'n');
    press(m, "\n");
    update(m, LogBytes{"key0", Stream::out, "a\n", true, 123'456'789, "", "the file was replaced"});
    EXPECT_THAT(screen(m), HasSubstr("n…) [the file was replaced], the end of 123 MB; p: all\n"));
}

TEST(Update, SaysWhatHasHappenedToTheFile)
{
    Model m = model(1);
    press(m, "\n");
    update(m, LogBytes{"key0", Stream::out, "old\n", true, 0, ""});
    update(m, LogBytes{"key0", Stream::out, "new\n", true, 0, "", "the file was replaced"});
    EXPECT_THAT(screen(m), HasSubstr("[the file was replaced]\nnew\n"));
    press(m, "k");
    update(m, LogBytes{"key0", Stream::out, "", true, 0, "", "the file was truncated"});
    EXPECT_THAT(screen(m), HasSubstr("[the file was truncated] [more: G]\nnew\n"));
}

TEST(Update, ShowsOnlyTheRunsThatPassTheFilter)
{
    Model m = model(30);
    press(m, "jj/run1");
    EXPECT_EQ(m.picture->rows.size(), 11U) << "while it is being typed";
    EXPECT_EQ(m.selected, "key1") << "the one before does not pass";
    EXPECT_THAT(screen(m), HasSubstr("11 of 30 with 'run1'"));
    EXPECT_THAT(screen(m), HasSubstr("only runs with: run1_"));
    press(m, "7\n");
    EXPECT_EQ(m.selected, "key17");
    update(m, PictureRead{picture(30)});
    EXPECT_THAT(screen(m), HasSubstr("1 of 30 with 'run17'"));
    press(m, "/x");
    EXPECT_THAT(screen(m), HasSubstr("no run has 'run17x' in its line; Esc: all"));
    EXPECT_TRUE(press(m, "\nx").empty()) << "there is none to stop";
    press(m, "\x1b");
    EXPECT_EQ(m.picture->rows.size(), 30U);
    EXPECT_EQ(m.selected, "key17");
    press(m, "/nothing such\x1b");
    EXPECT_EQ(m.picture->rows.size(), 30U) << "given up";
}

TEST(Update, FiltersByAllThatARunsLineTells)
{
    Model m = model(4);
    Picture next = picture(4);
    next.runs.rows[2][1] = report::Cell("waiting: no GPU is free");
    update(m, PictureRead{next});
    press(m, "/GPU is\n");
    ASSERT_EQ(m.picture->rows.size(), 1U);
    EXPECT_EQ(m.picture->runs.rows.size(), 1U);
    EXPECT_EQ(m.selected, "key2");
}

TEST(Update, ARunThatWasStartedIsShownWhateverTheFilter)
{
    Model m = model(3);
    press(m, "/run1\n+-- sleep 9\n");
    update(m, PictureRead{picture(3)});
    EXPECT_EQ(m.selected, "key1") << "those that the filter hides were there before";
    update(m, PictureRead{picture(4)});
    EXPECT_EQ(m.selected, "key3");
    EXPECT_EQ(m.picture->rows.size(), 4U);
}

TEST(Update, TabGoesThroughTheRunsTheLogAndItsErrors)
{
    Model m = model(2);
    EXPECT_EQ(std::get<OpenLog>(press(m, "\t")[0]).stream, Stream::out);
    EXPECT_EQ(std::get<OpenLog>(press(m, "\t")[0]).stream, Stream::err);
    EXPECT_TRUE(std::holds_alternative<CloseLog>(press(m, "\t")[0]));
    EXPECT_FALSE(m.log);
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
    update(shown, Tried{"-t 2h", {"would start something else", false}});
    EXPECT_THAT(screen(shown), Not(HasSubstr("something else"))); // the input has changed since
    update(shown, Tried{"-t 2h 'my train.py'", {"would start my train.py\nqueue: gpu\n", false}});
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
    update(shown, Tried{"'", {"too late", true}});
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
    EXPECT_THAT(screen(shown), HasSubstr("gpuq top")); // not more than half of the screen
}

TEST(RunInDetail, IsNoneWhileSomethingCoversIt)
{
    Model m = model(2);
    EXPECT_EQ(run_in_detail(m), "key0");
    press(m, "j");
    EXPECT_EQ(run_in_detail(m), "key1");
    press(m, "\n");
    EXPECT_EQ(run_in_detail(m), "");
    press(m, "\x1b");
    EXPECT_EQ(run_in_detail(m), "key1");
    press(m, "?");
    EXPECT_EQ(run_in_detail(m), "");
}

TEST(Update, HelpHasPagesOnASmallScreen)
{
    Model shown = model(1, {10, 60});
    press(shown, "?");
    EXPECT_THAT(screen(shown), HasSubstr("any key: more"));
    EXPECT_THAT(screen(shown), Not(HasSubstr("runs are not affected")));
    for (int i = 0; i < 2; ++i) {
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

TEST(Update, APlainJobIsStoppedByItsIdAndRefusesWhatNeedsASupervisor)
{
    Picture shown = picture(1);
    shown.rows[0].plain = true;
    shown.rows[0].key = shown.rows[0].id = "20_3";
    Model plain = model(0);
    EXPECT_TRUE(update(plain, PictureRead{shown}).empty());
    for (const char* key : {"a", "s", "S", "e", "i"}) {
        EXPECT_TRUE(press(plain, key).empty()) << key;
        EXPECT_THAT(plain.message, HasSubstr("is a plain Slurm job")) << key;
    }
    EXPECT_EQ(commands(press(plain, "xy")), std::vector<Strings>({{"stop", "20_3"}}));
}

} // namespace
} // namespace gpuq::tui
