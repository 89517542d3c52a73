// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/board_view.h"
#include "tui/change.h"
#include "tui/keys.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::tui {
namespace {

std::string name_of_try(const RunRow& sweep, std::size_t number)
{
    return fmt::format("{}/{}", sweep.name, number);
}

void stop_sweep(Change change, const RunRow& sweep)
{
    if (!sweep.active) {
        return change.report(fmt::format("sweep {} has ended already", sweep.name), true);
    }
    change.model.question = Question{fmt::format("stop sweep {}, {}?", sweep.name, sweep.state),
                                     {{{"stop", sweep.key}}}};
}

/// The marked tries that can be stopped; the selected one if none is marked.
std::vector<const TryRow*> tries_to_stop(const Model& model, const Sweep& sweep)
{
    std::vector<const TryRow*> tries;
    const TryRow* const selected = selected_try(model);
    for (const TryRow& entry : sweep.tries) {
        const bool is_chosen = model.board.marks.empty() || model.board.log
                                   ? &entry == selected
                                   : model.board.marks.contains(entry.number);
        if (is_chosen && entry.active) {
            tries.push_back(&entry);
        }
    }
    return tries;
}

/// The first try in the order stays the selected one when the order changes.
void choose_selected(Model& model)
{
    if (const TryRow* const entry = selected_try(model); entry != nullptr) {
        model.board.selected = entry->number;
    }
}

void stop_tries(Change change, const RunRow& sweep)
{
    Model& model = change.model;
    choose_selected(model);
    const auto tries = tries_to_stop(model, *sweep.sweep);
    if (tries.empty()) {
        return change.report(model.board.marks.empty() ? "this try has ended already"
                                                       : "all marked tries have ended already",
                             true);
    }
    Command command{{"stop"}};
    std::string text = fmt::format("stop {} tries of {}:", tries.size(), sweep.name);
    for (const TryRow* const entry : tries) {
        command.arguments.push_back(key_of_try(model, entry->number));
        text += fmt::format(" {}", entry->number);
    }
    if (tries.size() == 1) {
        const std::string values = values_text(*sweep.sweep, *tries.front());
        text = fmt::format("stop try {}{}, {}", name_of_try(sweep, tries.front()->number),
                           values.empty() ? "" : " (" + values + ")", tries.front()->state);
    }
    model.question = Question{text + "?", {std::move(command)}};
}

void select_try(Change change, std::size_t place)
{
    Model& model = change.model;
    const auto& order = model.board.order;
    if (const RunRow* const sweep = selected_run(model); sweep != nullptr && !order.empty()) {
        const std::size_t at = order[std::min(place, order.size() - 1)];
        model.board.selected = sweep->sweep->tries[at].number;
    }
}

void move_try(Change change, int by)
{
    const auto place = static_cast<int>(place_of_try(change.model)) + by;
    select_try(change, static_cast<std::size_t>(std::max(place, 0)));
}

void mark_try(Change change)
{
    Model& model = change.model;
    const TryRow* const entry = selected_try(model);
    if (entry == nullptr) {
        return;
    }
    if (model.board.marks.erase(entry->number) == 0) {
        model.board.marks.insert(entry->number);
    }
    move_try(change, 1);
}

/// In the order of the leaderboard.
void compare_tries(Change change, const Sweep& sweep)
{
    Model& model = change.model;
    std::vector<std::string> keys;
    for (const std::size_t at : model.board.order) {
        if (model.board.marks.contains(sweep.tries[at].number)) {
            keys.push_back(key_of_try(model, sweep.tries[at].number));
        }
    }
    begin_comparison(change, std::move(keys), "tries");
}

void next_parameter(Change change, const Sweep& sweep, int by)
{
    const auto count = static_cast<int>(sweep.parameters.size());
    if (count > 0) {
        const int at = std::min(static_cast<int>(change.model.board.parameter), count - 1);
        change.model.board.parameter = static_cast<std::size_t>((at + by + count) % count);
    }
}

/// Keys for one try, in the leaderboard and in its log. False for any other.
bool on_try_key(Change change, const RunRow& sweep, const Key& key)
{
    Model& model = change.model;
    const TryRow* const entry = selected_try(model);
    if (entry == nullptr) {
        return false;
    }
    const std::string name = key_of_try(model, entry->number);
    switch (key.character) {
    case U'v':
        change.add(Command{{"show", name}, true, true});
        return true;
    case U'p':
        change.add(Command{{"logs", name}, true, true});
        return true;
    case U'y': {
        const std::string command = fmt::format(
            "gpuq {} {}/{}", model.board.log ? "logs -f" : "show", sweep.id, entry->number);
        change.add(Copy{command});
        change.report("copied: " + command);
        return true;
    }
    case U'x':
        stop_tries(change, sweep);
        return true;
    case U'X':
        stop_sweep(change, sweep);
        return true;
    default:
        return false;
    }
}

bool needs_run(char32_t character)
{
    return std::u32string_view(U"asSeiAp").find(character) != std::u32string_view::npos;
}

} // namespace

bool on_sweep_action(Change change, const RunRow& sweep, const Key& key)
{
    const unsigned place = where(change.model);
    if (place != k_in_runs) {
        return on_try_key(change, sweep, key);
    }
    switch (key.character) {
    case U'v':
        change.add(Command{{"show", sweep.key}, true, true});
        return true;
    case U'y':
        change.add(Copy{"gpuq show " + sweep.id});
        change.report("copied: gpuq show " + sweep.id);
        return true;
    default:
        break;
    }
    if (needs_run(key.character)) {
        change.report(fmt::format("{} is a sweep, and this key is for runs; Enter shows its tries, "
                                  "Right its workers",
                                  sweep.name),
                      true);
        return true;
    }
    return false;
}

void on_board_mouse(Change change, const Mouse& mouse)
{
    constexpr int k_wheel = 3;
    Model& model = change.model;
    if (mouse.action == Mouse::Action::wheel_up || mouse.action == Mouse::Action::wheel_down) {
        return move_try(change, mouse.action == Mouse::Action::wheel_up ? -k_wheel : k_wheel);
    }
    model.panels.focus = Panel::run;
    if (const std::size_t number = try_at(model, mouse.row); number > 0) {
        model.board.selected = number;
        model.board.log = mouse.action == Mouse::Action::double_click;
    }
}

bool on_board_key(Change change, const Key& key)
{
    Model& model = change.model;
    const RunRow* const run = selected_run(model);
    if (run == nullptr || !run->sweep) {
        return false;
    }
    BoardView& board = model.board;
    const bool is_bracket = key.character == U'[' || key.character == U']';
    const int by = key.character == U'[' ? -1 : 1;
    if (board.log) {
        if (key.special == Special::escape) {
            board.log = false;
        } else if (is_bracket) {
            move_try(change, by);
        }
        return key.special == Special::escape || is_bracket;
    }
    constexpr int k_sorts = static_cast<int>(k_last_tries_sort) + 1;
    if (key.special == Special::escape && !board.marks.empty()) {
        board.marks.clear();
    } else if (key.special == Special::escape) {
        return false;
    } else if (is_bracket) {
        next_parameter(change, *run->sweep, by);
    } else if (const auto step = step_of(key, model)) {
        move_try(change, *step);
    } else if (key.special == Special::home || key.character == U'g') {
        select_try(change, 0);
    } else if (key.special == Special::end || key.character == U'G') {
        select_try(change, board.order.size());
    } else if (key.special == Special::enter) {
        choose_selected(model);
        board.log = selected_try(model) != nullptr;
    } else if (key.character == U' ') {
        mark_try(change);
    } else if (key.character == U'c') {
        compare_tries(change, *run->sweep);
    } else if (key.character == U'L') {
        model.charts.view.logarithmic = !model.charts.view.logarithmic;
    } else if (key.character == U'o') {
        board.ordered.reset();
        board.sort = static_cast<TriesBy>((static_cast<int>(board.sort) + 1) % k_sorts);
    } else if (key.character == U'O') {
        board.ordered.reset();
        board.reversed = !board.reversed;
    }
    return true;
}

} // namespace gpuq::tui
