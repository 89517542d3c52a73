// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/form.h"

#include "tui/screen_files.h"
#include "tui/update.h"
#include "tui/view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// The form that starts a run.
namespace gpuq::tui {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Strings = std::vector<std::string>;

constexpr std::size_t k_command = 0, k_gpus = 1, k_time = 2, k_queue = 3, k_directory = 5;

Model top_of(Resized size = {24, 80})
{
    Model made;
    update(made, size);
    update(made, Tick{Time(1000s)});
    Picture picture;
    picture.cluster = "centre";
    picture.answer = "yes: 2 k80 in queue calibration (up to 2 h)";
    picture.slurm_at = Time(990s);
    RunRow row;
    row.key = "key0";
    row.id = "4711";
    row.name = "train";
    row.state = "done";
    row.again = "-- a.py --lr 1";
    picture.runs = {row};
    update(made, PictureRead{picture});
    return made;
}

/// `\n` Enter, `\t` Tab, `\b` Shift-Tab, `<` Esc, `^` Up, `v` Down.
std::vector<Effect> fill_in(Model& shown, std::string_view keys)
{
    std::vector<Effect> all;
    for (const char key : keys) {
        const Special special = key == '\n'   ? Special::enter
                                : key == '\b' ? Special::back_tab
                                : key == '<'  ? Special::escape
                                : key == '^'  ? Special::up
                                : key == '|'  ? Special::down
                                              : Special::none;
        const auto point = static_cast<char32_t>(static_cast<unsigned char>(key));
        for (Effect& effect :
             update(shown, Key{special, special == Special::none ? point : U'\0'})) {
            all.push_back(std::move(effect));
        }
    }
    return all;
}

template <typename Kind>
std::vector<Strings> of_kind(const std::vector<Effect>& effects)
{
    std::vector<Strings> found;
    for (const Effect& effect : effects) {
        if (const auto* one = std::get_if<Kind>(&effect)) {
            found.push_back(one->arguments);
        }
    }
    return found;
}

const Form& form_of(const Model& shown)
{
    return *shown.commands.form;
}

TEST(Form, StartsARunWithTheFieldsAsOptions)
{
    Model shown = top_of();
    fill_in(shown, "+train.py --lr 1|2|");
    const auto effects = fill_in(shown, " 2h |gpu|my run|proj|.venv|torch\n");
    EXPECT_EQ(of_kind<Command>(effects),
              (std::vector<Strings>{{"run", "--detach", "--gpus", "2", "--time", "2h", "--queue",
                                     "gpu", "--name", "my run", "--chdir", "proj", "--venv",
                                     ".venv", "--conda", "torch", "train.py", "--lr", "1"}}));
    EXPECT_FALSE(shown.commands.form);
}

TEST(Form, EmptyFieldsAreNoOptions)
{
    Model shown = top_of();
    EXPECT_EQ(of_kind<Command>(fill_in(shown, "+a.py|  |\n")),
              (std::vector<Strings>{{"run", "--detach", "a.py"}}));
}

TEST(Form, StartsARunAgainWithOtherOptions)
{
    Model shown = top_of();
    EXPECT_EQ(of_kind<Command>(fill_in(shown, "A|2\n")),
              (std::vector<Strings>{{"again", "--detach", "--program", "--gpus", "2", "key0", "--",
                                     "a.py", "--lr", "1"}}));
    fill_in(shown, "A");
    EXPECT_THAT(view(shown).text(), AllOf(HasSubstr("start run 4711 (train) again"),
                                          HasSubstr("time       as before")));
}

TEST(Form, ShowsTheValuesThatTheRunKeeps)
{
    Model shown = top_of();
    fill_in(shown, "A");
    Detail detail;
    detail.key = "key0";
    detail.options = {{"--gpus", "k80:2"}, {"--name", "tr\x1b[2Jain"}, {"--chdir", "/home/ada"}};
    update(shown, DetailRead{detail});
    const auto text =
        AllOf(HasSubstr("GPUs       as before: k80:2"), HasSubstr("name       as before: tr"),
              HasSubstr("directory  as before: /home/ada"),
              HasSubstr("queue      default: follows from the time"), Not(HasSubstr("\x1b")));
    EXPECT_THAT(view(shown).text(), text);
    fill_in(shown, "<A"); // known by now
    EXPECT_THAT(view(shown).text(), text);
    fill_in(shown, "|1");
    EXPECT_THAT(view(shown).text(), HasSubstr("GPUs       1"));
    fill_in(shown, "<+");
    EXPECT_THAT(view(shown).text(), Not(HasSubstr("as before")));
}

TEST(Form, ShowsHowOldItsAnswerIsAndAsksAgain)
{
    Model shown = top_of({30, 100});
    const Strings asked = of_kind<Try>(fill_in(shown, "+a.py")).back();
    update(shown, Tick{Time(1100s)});
    EXPECT_THAT(view(shown).text(), Not(HasSubstr("ago, F5"))) << "no answer yet";
    update(shown, Tried{asked, {"would start a: 1 GPU", false}});
    update(shown, Tick{Time(1109s)});
    EXPECT_THAT(view(shown).text(), Not(HasSubstr("ago, F5")));
    update(shown, Tick{Time(1125s)});
    EXPECT_THAT(view(shown).text(), HasSubstr("─ 25 s ago, F5 asks again ┃"));
    EXPECT_EQ(of_kind<Try>(fill_in(shown, "\x12")), (std::vector<Strings>{asked}));
    EXPECT_THAT(view(shown).text(), HasSubstr("..."));
    EXPECT_EQ(form_of(shown).fields[k_command].typed, "a.py");
}

TEST(Form, WithoutAProgramItStaysOpen)
{
    Model shown = top_of();
    EXPECT_THAT(of_kind<Command>(fill_in(shown, "+|2\n")), IsEmpty());
    ASSERT_TRUE(shown.commands.form);
    EXPECT_THAT(view(shown).text(), HasSubstr("which program?"));
    EXPECT_THAT(of_kind<Command>(fill_in(shown, "<")), IsEmpty());
    EXPECT_FALSE(shown.commands.form);
}

TEST(Form, KeysOfPanelsAreText)
{
    Model shown = top_of();
    fill_in(shown, "+q?x:1F");
    EXPECT_EQ(form_of(shown).fields[k_command].typed, "q?x:1F");
    EXPECT_FALSE(shown.question || shown.help || shown.prompt);
    update(shown, Mouse{Mouse::Action::click, 3, 3});
    EXPECT_TRUE(shown.commands.form);
}

TEST(Form, EachChangeOfAFieldAsksWhatItWouldStart)
{
    Model shown = top_of();
    const auto effects = fill_in(shown, "+a|2h");
    EXPECT_EQ(of_kind<Try>(effects).back(),
              (Strings{"run", "--detach", "--dry-run", "--gpus", "2h", "a"}));
    update(shown, Tried{of_kind<Try>(effects).back(), {"'2h' is no number of GPUs", true}});
    EXPECT_THAT(view(shown).text(), HasSubstr("'2h' is no number of GPUs"));
    fill_in(shown, "\x7f");
    EXPECT_THAT(view(shown).text(), Not(HasSubstr("no number")));
    update(shown, Tried{of_kind<Try>(effects).back(), {"an old answer", false}});
    EXPECT_THAT(view(shown).text(), Not(HasSubstr("an old answer")));
}

TEST(Form, MovesAroundItsFields)
{
    Model shown = top_of();
    fill_in(shown, "+");
    fill_in(shown, "^");
    EXPECT_EQ(form_of(shown).at, k_form.size() - 1);
    fill_in(shown, "||");
    EXPECT_EQ(form_of(shown).at, k_gpus);
    fill_in(shown, "\t");
    EXPECT_EQ(form_of(shown).at, k_time);
    fill_in(shown, "2h\t");
    EXPECT_EQ(form_of(shown).at, k_queue) << "a time has no completion";
    fill_in(shown, "\b\b\b");
    EXPECT_EQ(form_of(shown).at, k_command);
}

TEST(Form, ShowsTheNamesThatAFieldMayHave)
{
    Model shown = top_of();
    const auto asked = of_kind<Complete>(fill_in(shown, "+a.py|2||"));
    ASSERT_EQ(asked, (std::vector<Strings>{{"run", "--detach", "--gpus", "2", "--queue", ""}}));
    update(shown, Completed{asked[0], {"calibration"}});
    EXPECT_EQ(form_of(shown).fields[k_queue].typed, "") << "nothing is filled in unasked";
    EXPECT_THAT(view(shown).text(), HasSubstr("calibration"));
    fill_in(shown, "\t");
    EXPECT_EQ(form_of(shown).at, k_queue + 1);
}

TEST(Form, TabCompletesAWordAndMovesOnIfItIsComplete)
{
    Model shown = top_of();
    fill_in(shown, "+|||");
    const auto asked = of_kind<Complete>(fill_in(shown, "g\t"));
    EXPECT_EQ(form_of(shown).at, k_queue);
    update(shown, Completed{asked.at(0), {"gpu-long", "gpu-short"}});
    EXPECT_EQ(form_of(shown).fields[k_queue].typed, "gpu-");
    EXPECT_THAT(view(shown).text(), HasSubstr("gpu-long  gpu-short"));
    const auto whole = fill_in(shown, "l\t");
    EXPECT_EQ(of_kind<Complete>(whole).at(0), (Strings{"run", "--detach", "--queue", "gpu-l"}));
    update(shown, Completed{of_kind<Complete>(whole)[0], {"gpu-long"}});
    EXPECT_EQ(form_of(shown).fields[k_queue].typed, "gpu-long");
    const auto again = of_kind<Complete>(fill_in(shown, "\t"));
    update(shown, Completed{again.at(0), {"gpu-long"}});
    EXPECT_EQ(form_of(shown).at, k_queue + 1);
    update(shown, Completed{again.at(0), {"gpu-longer"}});
    EXPECT_EQ(form_of(shown).fields[k_queue].typed, "gpu-long") << "the field has been left";
}

TEST(Form, CompletesFilesFromItsDirectory)
{
    Model shown = top_of();
    fill_in(shown, "+|||||my proj^^^^^python3 tr");
    const auto asked = of_kind<Complete>(fill_in(shown, "\t"));
    ASSERT_EQ(asked,
              (std::vector<Strings>{{"run", "--detach", "--chdir", "my proj", "python3", "tr"}}));
    update(shown, Completed{asked[0], {"train.py"}});
    EXPECT_EQ(form_of(shown).fields[k_command].typed, "python3 train.py ");
    fill_in(shown, "\t");
    EXPECT_EQ(form_of(shown).at, k_gpus) << "no word to complete";
    fill_in(shown, "||||");
    ASSERT_EQ(form_of(shown).at, k_directory);
    EXPECT_EQ(of_kind<Complete>(fill_in(shown, "\t")).at(0),
              (Strings{"run", "--detach", "--chdir", "my proj"}));
}

TEST(Form, OfAFailedStartIsOpenedAgain)
{
    Model shown = top_of();
    const Strings command = of_kind<Command>(fill_in(shown, "+a.py||9d\n")).at(0);
    update(shown, Done{"the policy allows 2 h", true, command});
    ASSERT_TRUE(shown.commands.form);
    EXPECT_EQ(form_of(shown).fields[k_time].typed, "9d");
    EXPECT_THAT(view(shown).text(), HasSubstr("the policy allows 2 h"));
}

TEST(Form, DrawsNoControlCharacters)
{
    for (const Resized size : {Resized{24, 80}, Resized{10, 40}, Resized{2, 20}}) {
        Model shown = top_of(size);
        fill_in(shown, "+a|");
        update(shown, Paste{U"\x1b[2J\x9b\u202e"});
        shown.commands.form->title = "\x1b]0;owned\a";
        shown.commands.form->answer = {"\x1b[31mno\x9b", true};
        for (const char* more : {"", "|"}) {
            fill_in(shown, more);
            EXPECT_THAT(view(shown).text(), Not(HasSubstr("\x1b")));
            EXPECT_THAT(view(shown).text(), Not(HasSubstr("\xc2\x9b")));
        }
    }
}

TEST(Form, LooksAsItDid)
{
    use_utc();
    for (const Resized& size : {Resized{10, 40}, {24, 80}, {30, 100}, {60, 200}, {3, 30}}) {
        Model shown = top_of(size);
        fill_in(shown, "+train.py --lr 1e-3|2|90m|");
        update(shown, Completed{{"run", "--detach", "--gpus", "2", "--time", "90m", "--queue", ""},
                                {"calibration", "gpu", "long"}});
        expect_screen("form-queues", size, view(shown).text());
        update(shown, Tried{of_kind<Try>(fill_in(shown, "gpu")).back(),
                            {"would start train: 2 GPUs, 90 min, queue gpu, 8 cores, 64 GiB\n"
                             "waits: no k80 is free; 50 % by 14:20, 90 % by 17:05; the next one is "
                             "free by 15:10 at the latest\n",
                             false}});
        expect_screen("form", size, view(shown).text());
        shown.commands.form->answer = {"the policy has this refused: at most 1 GPU in queue gpu, "
                                       "policy.yaml line 12",
                                       true};
        expect_screen("form-refused", size, view(shown).text());
    }
}

} // namespace
} // namespace gpuq::tui
