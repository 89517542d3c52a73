// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/change.h"

#include "core/nearest.h"
#include "core/quote.h"
#include "core/result.h"
#include "core/split_arguments.h"
#include "term/sanitise.h"
#include "tui/base/typed_text.h"
#include "tui/layout.h"
#include "tui/log_view.h"
#include "tui/runs_panel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gpuq::tui {
namespace {

constexpr char32_t k_tab = 9;
constexpr char32_t k_ctrl_c = 3;
/// Lines kept of each kind.
constexpr std::size_t k_most_entered = 100;

using Strings = std::vector<std::string>;

/// Commands that neither ask nor show a screen: their output is a message.
bool is_quick(const std::string& verb)
{
    constexpr std::array<std::string_view, 6> k_quick = {"stop",   "extend", "save",
                                                         "exempt", "resume", "free"};
    return std::find(k_quick.begin(), k_quick.end(), verb) != k_quick.end();
}

Command typed_command(Strings arguments)
{
    if (!arguments.empty() && arguments.front() == "gpuq") {
        arguments.erase(arguments.begin());
    }
    Command command{std::move(arguments)};
    const bool is_detached = !command.arguments.empty() && command.arguments.front() == "run" &&
                             std::find(command.arguments.begin(), command.arguments.end(),
                                       "--detach") != command.arguments.end();
    command.on_terminal =
        command.arguments.empty() || !(is_detached || is_quick(command.arguments.front()));
    command.pauses = command.on_terminal;
    return command;
}

/// Found here: the command would take the whole terminal only to report that it does not exist.
/// Options may be first.
Result<void> check_verb(const Command& command, const Strings& verbs)
{
    if (command.arguments.empty() || verbs.empty()) {
        return {};
    }
    const std::string& verb = command.arguments.front();
    if (command.arguments == Strings{"top"}) {
        return fail(Error::Kind::usage, "this is gpuq top");
    }
    if (verb.starts_with("-") || std::find(verbs.begin(), verbs.end(), verb) != verbs.end()) {
        return {};
    }
    return fail(Error::Kind::usage,
                fmt::format("no command '{}'{}; help lists them", verb, did_you_mean(verb, verbs)));
}

/// Its command; without arguments if nothing is to be executed. `usage` for an open quote, and for
/// an unknown command.
Result<Command> command_in(const Prompt& prompt, const Strings& verbs)
{
    if (prompt.purpose == Prompt::Purpose::exempt) {
        return Command{{"exempt", prompt.key_of_run, "--reason", prompt.typed}};
    }
    TRY_ASSIGN(const Strings typed, split_arguments(prompt.typed));
    if (prompt.purpose == Prompt::Purpose::command) {
        Command command = typed_command(typed);
        TRY(check_verb(command, verbs));
        return command;
    }
    Command command{{"extend", prompt.key_of_run}};
    command.arguments.insert(command.arguments.end(), typed.begin(), typed.end());
    return command;
}

/// A line that can't be read stays open.
void execute(Change change, Prompt prompt)
{
    auto command = command_in(prompt, change.model.commands.verbs);
    if (!command) {
        prompt.answer = {command.error().text, true};
        change.model.prompt = std::move(prompt);
        return;
    }
    if (command->arguments.empty()) {
        return;
    }
    if (!command->on_terminal) {
        change.report("...");
    }
    prompt.answer = {};
    change.model.commands.last = Commands::Last{std::move(prompt), command->arguments};
    change.add(std::move(*command));
}

void remember(Model& model, const Prompt& prompt)
{
    auto& lines = model.commands.entered[prompt.purpose];
    std::erase(lines, prompt.typed);
    lines.push_back(prompt.typed);
    if (lines.size() > k_most_entered) {
        lines.erase(lines.begin());
    }
}

void enter(Change change, Prompt prompt)
{
    Model& model = change.model;
    if (prompt.typed.empty()) {
        return;
    }
    remember(model, prompt);
    if (prompt.purpose == Prompt::Purpose::filter) {
        return; // it is applied at each key
    }
    if (prompt.purpose == Prompt::Purpose::search) {
        model.found = prompt.typed;
        if (model.log && !search_log(*model.log, area_of_tab(model), true, model.found, is_in)) {
            change.report(fmt::format("'{}' not found", model.found), true);
        }
        return;
    }
    execute(change, std::move(prompt));
}

/// Replaces the text by an earlier or a later line.
void fetch(const Model& model, Prompt& prompt, int by)
{
    const auto found = model.commands.entered.find(prompt.purpose);
    const int count =
        found == model.commands.entered.end() ? 0 : static_cast<int>(found->second.size());
    const int back = std::clamp(static_cast<int>(prompt.back) + by, 0, count);
    if (back == static_cast<int>(prompt.back)) {
        return;
    }
    if (prompt.back == 0) {
        prompt.draft = prompt.typed;
    }
    prompt.back = static_cast<std::size_t>(back);
    prompt.typed = back == 0 ? prompt.draft : found->second[static_cast<std::size_t>(count - back)];
    prompt.cursor = prompt.typed.size();
}

/// After the text of the line has changed.
void follow_change(Change change, Prompt& prompt)
{
    prompt.answer = {};
    if (prompt.purpose == Prompt::Purpose::filter) {
        change.model.list.filter = prompt.typed;
    }
}

void cancel(Model& model)
{
    if (model.prompt->purpose == Prompt::Purpose::filter) {
        model.list.filter = model.prompt->before;
    }
    model.prompt.reset();
}

} // namespace

void begin_prompt(Change change, Prompt::Purpose purpose, std::string label, std::string typed,
                  std::string key_of_run)
{
    Prompt prompt;
    prompt.purpose = purpose;
    prompt.label = std::move(label);
    prompt.cursor = typed.size();
    prompt.before = typed;
    prompt.typed = std::move(typed);
    prompt.key_of_run = std::move(key_of_run);
    change.model.prompt = std::move(prompt);
}

void on_paste(Change change, const Paste& paste)
{
    Model& model = change.model;
    if (model.commands.form && !model.question) {
        return paste_into_form(change, paste);
    }
    if (model.question || model.help || !model.prompt) {
        return change.report(
            "pasted text is ignored: open a line for it first, for instance with :");
    }
    model.prompt->proposals.clear();
    insert(*model.prompt, paste.text);
    follow_change(change, *model.prompt);
}

void on_prompt_key(Change change, const Key& key)
{
    Model& model = change.model;
    Prompt& prompt = *model.prompt;
    prompt.proposals.clear();
    if (key.special == Special::escape || key.character == k_ctrl_c) {
        return cancel(model);
    }
    if (key.special == Special::enter) {
        return enter(change, *std::exchange(model.prompt, std::nullopt));
    }
    if (key.character == k_tab) {
        const auto arguments = arguments_to_complete(prompt);
        if (arguments && prompt.purpose == Prompt::Purpose::command) {
            change.add(Complete{*arguments});
        }
        return;
    }
    const std::string before = prompt.typed;
    if (key.special == Special::up || key.special == Special::down) {
        fetch(model, prompt, key.special == Special::up ? 1 : -1);
    } else {
        edit(prompt, key);
    }
    if (prompt.typed == before) {
        return;
    }
    follow_change(change, prompt);
}

void on_completed(Change change, const Completed& completed)
{
    if (change.model.commands.form) {
        return complete_form(change, completed);
    }
    auto& prompt = change.model.prompt;
    if (!prompt || arguments_to_complete(*prompt) != completed.arguments) {
        return;
    }
    (void)complete_word(*prompt, completed.proposals);
    prompt->proposals = several(completed.proposals);
}

} // namespace gpuq::tui
