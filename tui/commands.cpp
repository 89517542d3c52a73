// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/change.h"
#include "tui/runs_panel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

namespace gpuq::tui {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

/// From the end of a command that has started a run until the run is listed.
constexpr auto k_listed_within = 60s;
constexpr auto k_failure_shown = 20s;
constexpr std::size_t k_most_toasts = 4;

/// Commands after which Slurm has other jobs or limits; all others at most change files.
bool changes_slurm(const Strings& arguments)
{
    constexpr std::array<std::string_view, 10> k_verbs = {
        "again",  "extend", "notebook", "rehearse", "reserve",
        "resume", "run",    "shell",    "stop",     "sweep"};
    return !arguments.empty() &&
           std::find(k_verbs.begin(), k_verbs.end(), arguments.front()) != k_verbs.end();
}

/// The line or form of the last command, with its message.
void open_again(Model& model, Done done)
{
    auto typed = std::exchange(model.commands.last, std::nullopt)->typed;
    if (Form* const form = std::get_if<Form>(&typed)) {
        form->answer = std::move(done);
        model.commands.form = std::move(*form);
    } else {
        model.prompt = std::get<Prompt>(std::move(typed));
        model.prompt->answer = std::move(done);
    }
}

} // namespace

void on_done(Change change, Done& done)
{
    Model& model = change.model;
    model.commands.running -= model.commands.running > 0 ? 1 : 0;
    change.add(Refresh{changes_slurm(done.arguments) ? Anew::unless_shared : Anew::no});
    if (!done.started.empty()) {
        model.commands.started = Commands::Started{done.started, model.now + k_listed_within};
    }
    if (!done.failed && !model.answer.failed && !model.answer.arguments.empty()) {
        // No key was pressed since: the commands of one question.
        done.message = model.answer.message + "\n" + done.message;
    }
    put_answer_away(model);
    const bool is_free = !model.prompt && !model.commands.form && !model.question && !model.help;
    if (done.failed && is_free && model.commands.last &&
        model.commands.last->arguments == done.arguments) {
        open_again(model, std::move(done));
    } else {
        model.answer = std::move(done);
    }
}

void put_answer_away(Model& model)
{
    const Done answer = std::exchange(model.answer, {});
    if (answer.failed && !answer.arguments.empty()) {
        add_toast(model, answer.message.substr(0, answer.message.find('\n')), RunMark::failed,
                  k_failure_shown);
    }
}

void add_toast(Model& model, std::string text, RunMark mark, std::chrono::seconds time)
{
    model.toasts.push_back({std::move(text), mark, model.now + time});
    if (model.toasts.size() > k_most_toasts) {
        model.toasts.erase(model.toasts.begin());
    }
}

void select_started(Model& model)
{
    auto& started = model.commands.started;
    if (started && (model.panels.focus == Panel::run || model.now > started->until)) {
        started.reset();
    }
    if (!started) {
        return;
    }
    for (const RunRow& run : model.picture.runs) {
        if (run.key == started->key) {
            model.selected = run.key;
            model.list.displaced.clear();
            if (!passes(run, model.list.filter)) {
                model.list.filter.clear();
            }
            return started.reset();
        }
    }
}

} // namespace gpuq::tui
