// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/change.h"

#include "core/quote.h"
#include "core/result.h"
#include "core/split_arguments.h"
#include "term/sanitise.h"
#include "tui/layout.h"
#include "tui/log_view.h"
#include "tui/runs_panel.h"
#include "tui/typed_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gpuq::tui {
namespace {

constexpr char32_t k_tab = 9;
constexpr char32_t k_ctrl_c = 3;
constexpr std::size_t k_most_proposals = 60;
/// Lines kept of each kind.
constexpr std::size_t k_most_entered = 100;

using Strings = std::vector<std::string>;

/// The beginning of the command that a prompt completes, as in its label.
std::optional<Strings> command_of(const Prompt& prompt)
{
    switch (prompt.purpose) {
    case Prompt::Purpose::start:
        return Strings{"run", "--detach"};
    case Prompt::Purpose::again:
        return Strings{"again", "--detach", "--program", prompt.key_of_run};
    case Prompt::Purpose::command:
        return Strings{};
    case Prompt::Purpose::search:
    case Prompt::Purpose::filter:
    case Prompt::Purpose::extend:
    case Prompt::Purpose::exempt:
        break;
    }
    return std::nullopt;
}

bool starts_run(const Prompt& prompt)
{
    return prompt.purpose == Prompt::Purpose::start || prompt.purpose == Prompt::Purpose::again;
}

/// Does nothing while a quote is still open.
void try_out(Change change, Prompt& prompt)
{
    prompt.answer = {};
    const auto arguments = split_arguments(prompt.typed);
    if (arguments && !arguments->empty()) {
        Strings command = *command_of(prompt);
        command.insert(command.begin() + 2, "--dry-run");
        command.insert(command.end(), arguments->begin(), arguments->end());
        change.add(Try{prompt.typed, std::move(command)});
    }
}

/// The words before the cursor; the last one is incomplete. Nothing within quotes.
void complete(Change change, const Prompt& prompt)
{
    const auto command = command_of(prompt);
    const auto arguments = split_arguments(prompt.typed);
    if (!command || !arguments || prompt.cursor != prompt.typed.size() ||
        prompt.typed.find_first_of("'\"\\") != std::string::npos) {
        return;
    }
    Strings all = *command;
    all.insert(all.end(), arguments->begin(), arguments->end());
    if (prompt.typed.empty() || prompt.typed.back() == ' ') {
        all.emplace_back();
    }
    change.add(Complete{prompt.typed, std::move(all)});
}

/// In quotes if split_arguments() would not read it as one argument otherwise.
std::string as_argument(const std::string& word)
{
    return word.find_first_of(" \t\n'\"\\") == std::string::npos ? word : shell_quoted(word);
}

std::string common_beginning(const Strings& proposals)
{
    std::string common = proposals.front();
    for (const std::string& proposal : proposals) {
        const auto end =
            std::mismatch(common.begin(), common.end(), proposal.begin(), proposal.end()).first;
        common.erase(end, common.end());
    }
    return common;
}

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

/// Its command; without arguments if nothing is to be executed. `usage` for an open quote.
Result<Command> command_in(const Prompt& prompt)
{
    if (prompt.purpose == Prompt::Purpose::exempt) {
        return Command{{"exempt", prompt.key_of_run, "--reason", prompt.typed}};
    }
    TRY_ASSIGN(const Strings typed, split_arguments(prompt.typed));
    if (prompt.purpose == Prompt::Purpose::command) {
        return typed_command(typed);
    }
    Command command;
    command.arguments = command_of(prompt).value_or(Strings{"extend", prompt.key_of_run});
    command.arguments.insert(command.arguments.end(), typed.begin(), typed.end());
    return command;
}

/// A line that can't be read stays open.
void execute(Change change, Prompt prompt)
{
    auto command = command_in(prompt);
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
    change.model.commands.last.emplace(std::move(prompt), command->arguments);
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
    if (starts_run(prompt)) {
        try_out(change, prompt);
    } else if (prompt.purpose == Prompt::Purpose::filter) {
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
    if (starts_run(*change.model.prompt)) {
        try_out(change, *change.model.prompt);
    }
}

void on_paste(Change change, const Paste& paste)
{
    Model& model = change.model;
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
        return complete(change, prompt);
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
    if (!change.model.prompt || change.model.prompt->typed != completed.typed ||
        completed.proposals.empty()) {
        return;
    }
    Prompt& prompt = *change.model.prompt;
    const std::size_t begin = prompt.typed.find_last_of(' ') + 1; // 0 without a blank
    const std::string word = prompt.typed.substr(begin);
    const std::string common = common_beginning(completed.proposals);
    const bool is_whole = completed.proposals.size() == 1 && !common.ends_with('/');
    if (common.size() + (is_whole ? 1 : 0) > word.size()) {
        prompt.typed.replace(begin, std::string::npos, as_argument(common) + (is_whole ? " " : ""));
        prompt.cursor = prompt.typed.size();
        if (starts_run(prompt)) {
            try_out(change, prompt);
        }
    }
    if (completed.proposals.size() > 1) {
        prompt.proposals = completed.proposals;
        prompt.proposals.resize(std::min(prompt.proposals.size(), k_most_proposals));
    }
}

} // namespace gpuq::tui
