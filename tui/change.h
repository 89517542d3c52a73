// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The parts of update(): each applies a key to a model and adds the effects to perform.
namespace gpuq::tui {

/// A model that is being changed.
struct Change {
    Model& model;
    std::vector<Effect>& effects;

    void add(Effect effect) { effects.push_back(std::move(effect)); }
    void report(std::string text, bool failed = false) { model.answer = {std::move(text), failed}; }
};

// panel_keys.cpp: moving in the panels.

/// How far a key moves; nothing for other keys.
std::optional<int> step_of(const Key& key, const Model& model);
void on_gpus_key(Change change, const Key& key);
void on_runs_key(Change change, const Key& key);
void on_run_key(Change change, const Key& key);
void on_comparison_key(Change change, const Key& key);
void on_mouse(Change change, const Mouse& mouse);
/// The run with the whole screen, or back to all panels.
void open_run(Change change);
void close_run(Change change);
/// Selects by its place in the list.
void select_run(Change change, int place);
int selected_place(const Model& model);
/// The part of k_keys that applies: a value of Where.
unsigned where(const Model& model);

// notices.cpp: events of runs.

/// Shows and reports the runs that start, end or need attention with the next picture; many of them
/// as one event.
void notice_changes(Change change, const Picture& next);

// selection.cpp: the selected run while the list changes.

/// Keeps the selected run among the next ones while its panel has the keys, even if it has left
/// the list.
void keep_selected(const Model& model, Picture& next);
/// If the selected run is not shown, selects the nearest one by the list before: indices of
/// `runs_before`. A run that returns is selected again.
void settle_selection(Model& model, const std::vector<RunRow>& runs_before,
                      const std::vector<std::size_t>& shown_before);

// board_keys.cpp: the tries of a sweep.

/// Actions on a sweep and its tries. False if the key is none.
bool on_sweep_action(Change change, const RunRow& sweep, const Key& key);
/// Keys of the panel while a sweep is selected. False if it is as for a run.
bool on_board_key(Change change, const Key& key);
/// A click on a try selects it, a double click opens its log.
void on_board_mouse(Change change, const Mouse& mouse);

// run_actions.cpp: actions on runs.

/// Shows runs or tries side by side; `of_what` for a message if they are less than two.
void begin_comparison(Change change, std::vector<std::string> keys, std::string_view of_what);
/// Asks before stopping the marked runs, or the selected one if none is marked.
void stop_runs(Change change);

/// False if the key is none for the selected run.
bool on_action_key(Change change, const Key& key);

// commands.cpp: commands that have ended.

/// Shows the end of a command and refreshes the data it may have changed. The line of a failed one
/// is opened again if no key has been pressed since.
void on_done(Change change, Done& done);
/// Selects a run that was started from here, once it is listed.
void select_started(Model& model);
/// Removes the message at the bottom; a failure of a command remains in view for a while.
void put_answer_away(Model& model);
void add_toast(Model& model, std::string text, RunMark mark, std::chrono::seconds time);

// prompt_keys.cpp: the line being typed.

void on_prompt_key(Change change, const Key& key);
/// Inserts it into the line being typed; without one it is ignored, since it consists of no keys.
void on_paste(Change change, const Paste& paste);
void on_completed(Change change, const Completed& completed);
void begin_prompt(Change change, Prompt::Purpose purpose, std::string label, std::string typed = "",
                  std::string key_of_run = "");

// form_keys.cpp: the form that starts a run.

/// `command`: the text of its first field. `key_of_run`: a run that is started again.
void open_form(Change change, std::string title, const std::string& command = "",
               std::string key_of_run = "");
void on_form_key(Change change, const Key& key);
void paste_into_form(Change change, const Paste& paste);
void complete_form(Change change, const Completed& completed);
void on_tried(Change change, Tried& tried);

} // namespace gpuq::tui
