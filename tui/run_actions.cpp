// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/change.h"

#include "tui/keys.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::tui {
namespace {

const char* noun_of(const RunRow& run)
{
    return run.plain ? "job" : run.sweep ? "sweep" : "run";
}

/// `4711 (train), 1 GPU, running for 47 min`.
std::string title_of(const RunRow& run)
{
    if (run.sweep) {
        return fmt::format("{}, {}", run.name, run.state);
    }
    return fmt::format("{} ({}), {}{}{}", run.id, run.name, run.held, run.since.empty() ? "" : ", ",
                       run.since);
}

void refuse(Change change, const RunRow& run, std::string_view why)
{
    change.report(fmt::format("{} {} {}", noun_of(run), run.sweep ? run.name : run.id, why), true);
}

/// Whether an action is for the marked runs: only in their list, where the marks can be seen.
bool uses_marks(const Model& model)
{
    return where(model) == k_in_runs && !model.marks.empty();
}

/// The marked runs that `may`; the selected one if none is marked, or in its own panel.
template <typename May>
std::vector<const RunRow*> chosen(const Model& model, const May& may)
{
    std::vector<const RunRow*> runs;
    if (!uses_marks(model)) {
        if (const RunRow* const run = selected_run(model); run != nullptr && may(*run)) {
            runs.push_back(run);
        }
        return runs;
    }
    for (const RunRow& run : model.picture.runs) {
        if (model.marks.contains(run.key) && may(run)) {
            runs.push_back(&run);
        }
    }
    return runs;
}

/// How a command names it.
const std::string& argument_for(const RunRow& run)
{
    return run.plain ? run.id : run.key;
}

std::string question_about(std::string_view verb, const std::vector<const RunRow*>& runs)
{
    if (runs.size() == 1) {
        return fmt::format("{} {} {}?", verb, noun_of(*runs.front()), title_of(*runs.front()));
    }
    std::string text = fmt::format("{} {} runs:", verb, runs.size());
    for (const RunRow* const run : runs) {
        text += " " + (run->sweep ? run->name : run->id);
    }
    return text + "?";
}

/// Asks before a command that names all of the runs.
void ask(Change change, std::string_view verb, std::vector<std::string> arguments,
         const std::vector<const RunRow*>& runs)
{
    for (const RunRow* const run : runs) {
        arguments.push_back(argument_for(*run));
    }
    change.model.question = Question{question_about(verb, runs), {{std::move(arguments)}}};
}

void save_and_stop(Change change)
{
    const auto runs =
        chosen(change.model, [](const RunRow& run) { return run.active && run.saves; });
    if (!runs.empty()) {
        return ask(change, "save and stop", {"stop", "--checkpoint"}, runs);
    }
    const RunRow& run = *selected_run(change.model);
    uses_marks(change.model)
        ? change.report("none of the marked runs can save: see man gpuq-chain", true)
        : refuse(change, run, run.active ? "can't save: see man gpuq-chain" : "has ended already");
}

/// Asks only before saving several.
void save(Change change, const RunRow& selected)
{
    const auto runs = chosen(
        change.model, [](const RunRow& run) { return run.running && !run.plain && !run.sweep; });
    if (runs.empty()) {
        return uses_marks(change.model)
                   ? change.report("none of the marked runs is running: nothing to save", true)
                   : refuse(change, selected, "is not running: nothing to save");
    }
    Question question{question_about("save", runs), {}};
    for (const RunRow* const run : runs) {
        question.commands.push_back({{"save", run->key}});
    }
    if (runs.size() > 1) {
        change.model.question = std::move(question);
        return;
    }
    change.report("...");
    change.add(std::move(question.commands.front()));
}

void compare(Change change)
{
    const Model& model = change.model;
    std::vector<std::string> keys;
    for (const RunRow& run : model.picture.runs) {
        if (model.marks.contains(run.key) && !run.plain && !run.sweep) {
            keys.push_back(run.key);
        }
    }
    const bool are_all = keys.size() == model.marks.size();
    begin_comparison(change, std::move(keys), "runs");
    if (model.comparison && !are_all) {
        change.report("plain jobs and sweeps are not compared with runs");
    }
}

void mark(Change change, const RunRow& run)
{
    Model& model = change.model;
    if (model.marks.erase(run.key) == 0) {
        model.marks.insert(run.key);
    }
    select_run(change, selected_place(model) + 1);
}

void again(Change change, const RunRow& run)
{
    if (run.again.empty()) {
        return refuse(change, run, "can't be started again from here");
    }
    open_form(change, fmt::format("start run {} ({}) again", run.id, run.name), run.again, run.key);
}

/// Asks for a text about an active run.
void ask_about(Change change, const RunRow& run, Prompt::Purpose purpose, std::string label)
{
    run.active ? begin_prompt(change, purpose, std::move(label), "", run.key)
               : refuse(change, run, "has ended already");
}

/// Whether a key is for the marked runs, whatever the selected one is.
bool is_for_marks(const Model& model, char32_t character)
{
    return uses_marks(model) && (character == U's' || character == U'S');
}

bool needs_supervisor(char32_t character)
{
    return std::u32string_view(U"asSeiA").find(character) != std::u32string_view::npos;
}

} // namespace

void begin_comparison(Change change, std::vector<std::string> keys, std::string_view of_what)
{
    if (keys.size() < 2) {
        return change.report(
            fmt::format("mark two or more {} with Space to compare them", of_what));
    }
    Model& model = change.model;
    model.comparison.emplace();
    model.comparison->keys = keys;
    model.panels.scroll = 0;
    model.charts.selected = 0;
    change.add(Compare{std::move(keys)});
}

void stop_runs(Change change)
{
    const auto runs = chosen(change.model, [](const RunRow& run) { return run.active; });
    if (!runs.empty()) {
        return ask(change, "stop", {"stop"}, runs);
    }
    uses_marks(change.model) ? change.report("all marked runs have ended already", true)
                             : refuse(change, *selected_run(change.model), "has ended already");
}

bool on_action_key(Change change, const Key& key)
{
    const RunRow* const selected = selected_run(change.model);
    const unsigned place = where(change.model);
    if (selected == nullptr || (place & (k_in_runs | k_in_run | k_in_sweep)) == 0U ||
        (place == k_in_log && key.character == U'e')) {
        return false;
    }
    const RunRow run = *selected;
    const bool for_marks = is_for_marks(change.model, key.character);
    if (run.sweep && !for_marks && on_sweep_action(change, run, key)) {
        return true;
    }
    if (run.sweep && place != k_in_runs) {
        return false;
    }
    if (run.plain && !for_marks && needs_supervisor(key.character)) {
        change.report(
            fmt::format("job {} is a plain Slurm job, and this key is for runs of gpuq; v "
                        "shows the job, x stops it",
                        run.id),
            true);
        return true;
    }
    switch (key.character) {
    case U'v':
        change.add(Command{{"show", argument_for(run)}, true, true});
        return true;
    case U'p':
        change.add(Command{{"logs", "--printable", argument_for(run)}, true, true});
        return true;
    case U'y': {
        const std::string command =
            fmt::format("gpuq {} {}", place == k_in_log ? "logs -f" : "show", run.id);
        change.add(Copy{command});
        change.report("copied: " + command);
        return true;
    }
    case U'a':
        run.running ? change.add(Command{{"attach", run.key}, true})
                    : refuse(change, run, "is not running: nothing to attach to");
        return true;
    case U'x':
        stop_runs(change);
        return true;
    case U's':
        save_and_stop(change);
        return true;
    case U'S':
        save(change, run);
        return true;
    case U'e':
        ask_about(change, run, Prompt::Purpose::extend,
                  fmt::format("more time for run {}: ", run.id));
        return true;
    case U'i':
        ask_about(change, run, Prompt::Purpose::exempt,
                  fmt::format("why run {} keeps idle GPUs: ", run.id));
        return true;
    case U'A':
        again(change, run);
        return true;
    default:
        break;
    }
    if (place == k_in_runs && key.character == U' ') {
        mark(change, run);
        return true;
    }
    if (place == k_in_runs && key.character == U'c') {
        compare(change);
        return true;
    }
    return false;
}

} // namespace gpuq::tui
