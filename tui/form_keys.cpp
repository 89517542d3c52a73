// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/change.h"

#include "core/result.h"
#include "core/split_arguments.h"
#include "core/strings.h"
#include "tui/base/typed_text.h"
#include "tui/form.h"

#include <utility>

namespace gpuq::tui {
namespace {

constexpr char32_t k_tab = 9;
constexpr char32_t k_ctrl_c = 3, k_ctrl_r = 18;

using Strings = std::vector<std::string>;
using Completes = FormRow::Completes;

/// The command and the options that are filled in, without those of one field.
Strings options_of(const Form& form, std::size_t without = 0)
{
    Strings command = form.key_of_run.empty() ? Strings{"run", "--detach"}
                                              : Strings{"again", "--detach", "--program"};
    for (std::size_t i = 1; i < k_form.size(); ++i) {
        const std::string_view value = trimmed(form.fields[i].typed);
        if (i != without && !value.empty()) {
            command.emplace_back(k_form[i].option);
            command.emplace_back(value);
        }
    }
    return command;
}

void add_typed(Strings& command, const Form& form, const Strings& typed)
{
    if (!form.key_of_run.empty()) {
        command.push_back(form.key_of_run);
    }
    command.insert(command.end(), typed.begin(), typed.end());
}

/// `usage` for an open quote, or without a program.
Result<Strings> command_of(const Form& form)
{
    TRY_ASSIGN(const Strings typed, split_arguments(form.fields[0].typed));
    if (typed.empty()) {
        return fail(Error::Kind::usage, "which program? its command line is the first field");
    }
    Strings command = options_of(form);
    add_typed(command, form, typed);
    return command;
}

Result<Strings> dry_run_of(const Form& form)
{
    TRY_ASSIGN(Strings command, command_of(form));
    command.insert(command.begin() + 2, "--dry-run");
    return command;
}

/// The command line that completes the present field: its last word.
std::optional<Strings> completion_of(const Form& form)
{
    const FormRow& row = k_form[form.at];
    const TypedText& text = form.fields[form.at];
    Strings command = options_of(form, form.at);
    if (row.completes == Completes::nothing) {
        return std::nullopt;
    }
    if (row.completes != Completes::arguments) {
        command.emplace_back(row.option);
        command.push_back(text.typed);
        return command;
    }
    const auto typed = arguments_to_complete(text);
    if (!typed || typed->back().empty()) {
        return std::nullopt;
    }
    add_typed(command, form, *typed);
    return command;
}

void refuse(Change change, Form& form, const Error& error)
{
    form.answer = {error.text, true};
    form.answered_at = change.model.now;
}

void try_out(Change change, Form& form)
{
    form.proposals.clear();
    form.answer = {};
    if (auto command = dry_run_of(form)) {
        change.add(Try{*std::move(command)});
    } else if (!form.fields[0].typed.empty()) {
        refuse(change, form, command.error());
    }
}

/// To another field; the names that an empty one may have are shown.
void move(Change change, Form& form, int by)
{
    const auto count = static_cast<int>(k_form.size());
    form.at = static_cast<std::size_t>((static_cast<int>(form.at) + by + count) % count);
    form.proposals.clear();
    TypedText& text = form.fields[form.at];
    text.cursor = text.typed.size();
    if (k_form[form.at].completes == Completes::names && text.typed.empty()) {
        change.add(Complete{*completion_of(form)});
    }
}

/// The word before the cursor, or on to the next field if there is none.
void complete_or_move(Change change, Form& form)
{
    const bool are_shown = !form.proposals.empty();
    const auto completion = completion_of(form);
    if (completion && !are_shown && !form.fields[form.at].typed.empty()) {
        change.add(Complete{*completion});
    } else {
        move(change, form, 1);
    }
}

void start(Change change)
{
    Commands& commands = change.model.commands;
    auto command = command_of(*commands.form);
    if (!command) {
        return refuse(change, *commands.form, command.error());
    }
    change.report("...");
    commands.last = Commands::Last{*std::exchange(commands.form, std::nullopt), *command};
    change.add(Command{*std::move(command)});
}

} // namespace

void open_form(Change change, std::string title, const std::string& command, std::string key_of_run)
{
    Form& form = change.model.commands.form.emplace();
    form.title = std::move(title);
    form.key_of_run = std::move(key_of_run);
    form.fields[0] = {command, command.size()};
    if (const Detail* const detail = selected_detail(change.model);
        detail != nullptr && detail->key == form.key_of_run) {
        form.before = detail->options;
    }
    try_out(change, form);
}

void on_form_key(Change change, const Key& key)
{
    Form& form = *change.model.commands.form;
    if (key.special == Special::escape || key.character == k_ctrl_c) {
        return change.model.commands.form.reset();
    }
    if (key.special == Special::enter) {
        return start(change);
    }
    if (key.character == k_tab) {
        return complete_or_move(change, form);
    }
    if (key.character == k_ctrl_r) {
        return try_out(change, form);
    }
    if (key.special == Special::down) {
        return move(change, form, 1);
    }
    if (key.special == Special::up || key.special == Special::back_tab) {
        return move(change, form, -1);
    }
    TypedText& text = form.fields[form.at];
    const std::string before = text.typed;
    edit(text, key);
    if (text.typed != before) {
        try_out(change, form);
    }
}

void paste_into_form(Change change, const Paste& paste)
{
    Form& form = *change.model.commands.form;
    insert(form.fields[form.at], paste.text);
    try_out(change, form);
}

void complete_form(Change change, const Completed& completed)
{
    Form& form = *change.model.commands.form;
    TypedText& text = form.fields[form.at];
    if (completion_of(form) != completed.arguments) {
        return;
    }
    if (text.typed.empty()) {
        form.proposals = completed.proposals;
        return;
    }
    const bool is_longer = k_form[form.at].completes == Completes::arguments
                               ? complete_word(text, completed.proposals)
                               : complete_text(text, completed.proposals);
    if (is_longer) {
        try_out(change, form);
    }
    form.proposals = several(completed.proposals);
    if (!is_longer && form.proposals.empty()) {
        move(change, form, 1);
    }
}

void on_tried(Change change, Tried& tried)
{
    auto& form = change.model.commands.form;
    if (!form) {
        return;
    }
    if (const auto command = dry_run_of(*form); command && *command == tried.arguments) {
        form->answer = std::move(tried.done);
        form->answered_at = change.model.now;
    }
}

} // namespace gpuq::tui
