// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/change.h"

#include "tui/board_view.h"
#include "tui/comparison_view.h"
#include "tui/gpu_panel.h"
#include "tui/keys.h"
#include "tui/layout.h"
#include "tui/log_view.h"
#include "tui/lower_panel.h"
#include "tui/run_panel.h"
#include "tui/runs_panel.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::tui {
namespace {

constexpr char32_t k_ctrl_d = 4, k_ctrl_u = 21;
constexpr int k_wheel = 3;
constexpr double k_cursor_step = 0.01, k_least_visible = 0.01;

bool is_first(const Key& key)
{
    return key.special == Special::home || key.character == U'g';
}

bool is_last(const Key& key)
{
    return key.special == Special::end || key.character == U'G';
}

/// -1 and 1 for the keys that move to the left and right.
int sideways(const Key& key)
{
    return key.special == Special::left || key.character == U'h'    ? -1
           : key.special == Special::right || key.character == U'l' ? 1
                                                                    : 0;
}

void search_errors(Change change, bool forward)
{
    OpenedLog& log = *change.model.log;
    if (!search_log(log, area_of_tab(change.model), forward, "", is_error_line)) {
        change.report("no error or traceback in the part of the log that is shown");
    }
}

void search_text(Change change, bool forward)
{
    Model& model = change.model;
    if (model.found.empty()) {
        return change.report("nothing to search for: / begins a search");
    }
    if (!search_log(*model.log, area_of_tab(model), forward, model.found, is_in)) {
        change.report(fmt::format("'{}' not found", model.found), true);
    }
}

void follow(Change change)
{
    OpenedLog& log = *change.model.log;
    log.follow = true;
    if (log.behind) { // lines are missing: reads the log again
        change.add(OpenLog{log.key, log.stream});
    }
}

void other_stream(Change change)
{
    OpenedLog& log = *change.model.log;
    if (log.is_joint) {
        return change.report("the log of a try has both output streams");
    }
    OpenedLog other;
    other.key = log.key;
    other.id = log.id;
    other.title = log.title;
    other.name = log.name;
    other.wrap = log.wrap;
    other.with_times = log.with_times;
    other.stream = log.stream == Stream::out ? Stream::err : Stream::out;
    log = std::move(other);
    change.add(OpenLog{log.key, log.stream});
}

void on_log_key(Change change, const Key& key)
{
    Model& model = change.model;
    OpenedLog& log = *model.log;
    const Rect area = area_of_tab(model);
    if (const auto by = step_of(key, model)) {
        scroll_log(log, area, *by);
    } else if (is_first(key)) {
        show_begin(log);
    } else if (is_last(key)) {
        follow(change);
    } else if (key.character == U'f') {
        log.follow ? hold(log, area) : follow(change);
    } else if (key.character == U'w') {
        log.wrap = !log.wrap;
        log.top_row = 0;
    } else if (key.character == U't') {
        log.with_times = !log.with_times;
        log.top_row = 0;
        model.answer.message =
            log.with_times && log.times.empty() ? "the times of this log are unknown" : "";
    } else if (key.character == U'o') {
        other_stream(change);
    } else if (key.character == U'/') {
        begin_prompt(change, Prompt::Purpose::search, "search: ");
    } else if (key.character == U'n' || key.character == U'N') {
        search_text(change, key.character == U'n');
    } else if (key.character == U'e' || key.character == U'E') {
        search_errors(change, key.character == U'e');
    }
}

/// The middle of the visible part, or the cursor.
void zoom(ChartView& chart, double factor)
{
    const double span = chart.to - chart.from;
    const double wanted = std::clamp(span * factor, k_least_visible, 1.0);
    const double at = chart.from + chart.cursor.value_or(0.5) * span;
    chart.from = std::clamp(at - wanted / 2, 0.0, 1.0 - wanted);
    chart.to = chart.from + wanted;
}

void pan(ChartView& chart, double share)
{
    const double span = chart.to - chart.from;
    chart.from = std::clamp(chart.from + share * span, 0.0, 1.0 - span);
    chart.to = chart.from + span;
}

/// False if the key is none for charts.
bool on_chart_key(ChartView& chart, const Key& key)
{
    constexpr double k_smooth[] = {0, 0.6, 0.9, 0.97};
    if (const int by = sideways(key); by != 0) {
        chart.cursor =
            std::clamp(chart.cursor.value_or(by > 0 ? 0 : 1) + by * k_cursor_step, 0.0, 1.0);
        return true;
    }
    switch (key.character) {
    case U'L':
        chart.logarithmic = !chart.logarithmic;
        return true;
    case U't':
        chart.by_time = !chart.by_time;
        return true;
    case U'm': {
        const auto* const at = std::find(std::begin(k_smooth), std::end(k_smooth), chart.smoothing);
        chart.smoothing = at == std::end(k_smooth) || at + 1 == std::end(k_smooth) ? 0 : at[1];
        return true;
    }
    case U'z':
        zoom(chart, 0.5);
        return true;
    case U'Z':
        zoom(chart, 2);
        return true;
    case U'<':
        pan(chart, -0.25);
        return true;
    case U'>':
        pan(chart, 0.25);
        return true;
    case U'0':
        chart.from = 0;
        chart.to = 1;
        chart.cursor.reset();
        return true;
    default:
        return false;
    }
}

/// Chooses the selected chart, or no longer.
void choose_chart(Model& model, const Detail& detail)
{
    const auto charts = charts_of(detail.curves);
    const std::string& title =
        detail.curves[charts[std::min(model.charts.selected, charts.size() - 1)][0]].title;
    if (model.charts.chosen.erase(title) == 0) {
        model.charts.chosen.insert(title);
    }
}

void on_curves_key(Change change, const Key& key)
{
    Model& model = change.model;
    const Detail* const detail = selected_detail(model);
    const int charts = detail == nullptr ? 0 : static_cast<int>(charts_of(detail->curves).size());
    const auto select = [&](int chart) {
        model.charts.selected =
            static_cast<std::size_t>(std::clamp(chart, 0, std::max(charts - 1, 0)));
    };
    if (on_chart_key(model.charts.view, key)) {
        return;
    }
    if (const auto by = step_of(key, model)) {
        select(static_cast<int>(model.charts.selected) + (*by > 0 ? 1 : -1));
    } else if (is_first(key)) {
        select(0);
    } else if (is_last(key)) {
        select(charts - 1);
    } else if (key.special == Special::enter) {
        model.charts.single = !model.charts.single;
    } else if (key.character == U' ' && charts > 0) {
        choose_chart(model, *detail);
    }
}

void on_text_key(Change change, const Key& key)
{
    Model& model = change.model;
    const int last = last_scroll(model, area_of_tab(model));
    if (const auto by = step_of(key, model)) {
        model.panels.scroll = std::clamp(model.panels.scroll + *by, 0, last);
    } else if (is_first(key)) {
        model.panels.scroll = 0;
    } else if (is_last(key)) {
        model.panels.scroll = last;
    }
}

void set_tab(Change change, int tab)
{
    constexpr int k_count = static_cast<int>(k_last_tab) + 1;
    change.model.panels.tab = static_cast<Tab>((tab + k_count) % k_count);
    change.model.panels.scroll = 0;
}

void set_focus(Change change, Panel panel)
{
    Model& model = change.model;
    if (panel != Panel::run && model.panels.full) {
        close_run(change);
    }
    model.panels.focus = panel;
}

/// Hides or shows the workers of the selected sweep, or of the sweep that the selected run works
/// on.
void fold(Change change, bool hides)
{
    Model& model = change.model;
    const RunRow* const run = selected_run(model);
    if (run == nullptr || (!run->sweep && run->sweep_key.empty())) {
        return change.report("Left and Right hide and show the workers of a sweep");
    }
    const std::string sweep = run->sweep ? run->key : run->sweep_key;
    if (hides) {
        model.list.unfolded.erase(sweep);
        model.selected = sweep;
    } else {
        model.list.unfolded.insert(sweep);
    }
}

/// At its end it follows again: no key does that for this panel.
void scroll_lower_log(Change change, int rows)
{
    OpenedLog& log = *change.model.log;
    const Rect area = area_of_lower_log(change.model);
    scroll_log(log, area, rows);
    if (rows > 0 && is_at_end(log, area)) {
        follow(change);
    }
}

/// On the whole screen.
void open_lower_log(Change change)
{
    open_run(change);
    if (selected_run(change.model)->sweep) {
        return on_run_key(change, Key{Special::enter, 0});
    }
    change.model.panels.tab = Tab::log;
}

/// Selects the run that holds the selected GPU.
void go_to_holder(Change change)
{
    Model& model = change.model;
    const std::string key = run_of_gpu(model);
    const auto& runs = model.picture.runs;
    const bool is_shown = std::any_of(model.shown.begin(), model.shown.end(),
                                      [&](std::size_t at) { return runs[at].key == key; });
    if (key.empty() || !is_shown) {
        return change.report("no run of yours in the list holds this GPU");
    }
    model.selected = key;
    set_focus(change, Panel::runs);
}

} // namespace

unsigned where(const Model& model)
{
    if (model.commands.form) {
        return k_in_form;
    }
    if (model.comparison) {
        return k_in_comparison;
    }
    switch (model.panels.focus) {
    case Panel::gpus:
        return k_in_gpus;
    case Panel::runs:
        return k_in_runs;
    case Panel::run:
        break;
    }
    if (const RunRow* const run = selected_run(model); run != nullptr && run->sweep) {
        return model.board.log ? k_in_try_log : k_in_board;
    }
    return model.panels.tab == Tab::log      ? k_in_log
           : model.panels.tab == Tab::curves ? k_in_curves
                                             : k_in_text;
}

std::optional<int> step_of(const Key& key, const Model& model)
{
    const int page = std::max(model.size.rows / 2, 1);
    if (key.special == Special::down || key.character == U'j') {
        return 1;
    }
    if (key.special == Special::up || key.character == U'k') {
        return -1;
    }
    if (key.special == Special::page_down || key.character == k_ctrl_d) {
        return page;
    }
    if (key.special == Special::page_up || key.character == k_ctrl_u) {
        return -page;
    }
    return std::nullopt;
}

int selected_place(const Model& model)
{
    for (std::size_t i = 0; i < model.shown.size(); ++i) {
        if (model.picture.runs[model.shown[i]].key == model.selected) {
            return static_cast<int>(i);
        }
    }
    return 0;
}

void select_run(Change change, int place)
{
    Model& model = change.model;
    model.commands.started.reset(); // the user has moved to another run
    if (!model.shown.empty()) {
        const int last = static_cast<int>(model.shown.size()) - 1;
        const std::size_t at = model.shown[static_cast<std::size_t>(std::clamp(place, 0, last))];
        model.selected = model.picture.runs[at].key;
    }
}

void open_run(Change change)
{
    Model& model = change.model;
    if (selected_run(model) == nullptr) {
        return;
    }
    model.panels.tab_in_panel = model.panels.tab;
    if (!selected_run(model)->sweep) {
        model.panels.tab = model.panels.tab == Tab::facts ? Tab::log : model.panels.tab;
    }
    model.panels.scroll = 0;
    model.panels.focus = Panel::run;
    model.panels.full = true;
}

void close_run(Change change)
{
    Model& model = change.model;
    if (model.panels.full) {
        model.panels.tab = model.panels.tab_in_panel;
    }
    model.panels.full = false;
    model.board.log = false;
    model.panels.scroll = 0;
    model.panels.focus = Panel::runs;
}

void on_gpus_key(Change change, const Key& key)
{
    Model& model = change.model;
    const Rect panel = areas_of(model).gpus;
    if (const int by = sideways(key); by != 0) {
        model.gpu = gpu_beside(model, panel, by, 0);
    } else if (const auto down = step_of(key, model)) {
        model.gpu = gpu_beside(model, panel, 0, *down);
    } else if (is_first(key)) {
        model.gpu = 0;
    } else if (is_last(key)) {
        model.gpu = gpu_beside(model, panel, 1'000'000, 0);
    } else if (key.special == Special::enter) {
        go_to_holder(change);
    } else if (key.special == Special::escape) {
        model.panels.focus = Panel::runs;
    }
}

void on_runs_key(Change change, const Key& key)
{
    Model& model = change.model;
    constexpr int k_sorts = static_cast<int>(k_last_sort) + 1;
    if (const auto by = step_of(key, model)) {
        select_run(change, selected_place(model) + *by);
    } else if (is_first(key)) {
        select_run(change, 0);
    } else if (is_last(key)) {
        select_run(change, static_cast<int>(model.shown.size()) - 1);
    } else if (key.special == Special::escape) {
        model.list.filter.empty() ? model.marks.clear() : model.list.filter.clear();
    } else if (key.special == Special::enter || key.character == U'l') {
        open_run(change);
    } else if (key.special == Special::left || key.special == Special::right) {
        fold(change, key.special == Special::left);
    } else if (key.character == U'o') {
        model.list.sort = static_cast<SortBy>((static_cast<int>(model.list.sort) + 1) % k_sorts);
    } else if (key.character == U'O') {
        model.list.reversed = !model.list.reversed;
    } else if (key.character == U'b') {
        model.list.grouped = !model.list.grouped;
    } else if (key.character == U'z') {
        model.list.hides_ended = !model.list.hides_ended;
    }
}

void on_run_key(Change change, const Key& key)
{
    Model& model = change.model;
    if (on_board_key(change, key)) {
        return;
    }
    if (key.special == Special::escape) {
        return close_run(change);
    }
    if (model.board.log) {
        return model.log ? on_log_key(change, key) : void();
    }
    if (key.character == U'[' || key.character == U']') {
        return set_tab(change,
                       static_cast<int>(model.panels.tab) + (key.character == U']' ? 1 : -1));
    }
    if (model.panels.tab == Tab::log) {
        if (model.log) {
            on_log_key(change, key);
        }
        return;
    }
    if (model.panels.tab == Tab::curves) {
        return on_curves_key(change, key);
    }
    if (const int by = sideways(key); by != 0) {
        return set_tab(change, static_cast<int>(model.panels.tab) + by);
    }
    on_text_key(change, key);
}

void on_comparison_key(Change change, const Key& key)
{
    Model& model = change.model;
    const Comparison& compared = *model.comparison;
    const int metrics = static_cast<int>(compared.metrics.size());
    if (key.special == Special::escape) {
        model.comparison.reset();
        model.panels.scroll = 0;
        return;
    }
    if (on_chart_key(model.charts.view, key)) {
        return;
    }
    if (key.special == Special::down || key.character == U'j' || key.special == Special::up ||
        key.character == U'k') {
        const int by = key.special == Special::down || key.character == U'j' ? 1 : -1;
        model.charts.selected = static_cast<std::size_t>(
            std::clamp(static_cast<int>(model.charts.selected) + by, 0, std::max(metrics - 1, 0)));
    } else if (const auto by = step_of(key, model)) {
        model.panels.scroll = std::clamp(model.panels.scroll + *by, 0, last_comparison_line(model));
    }
}

void on_mouse(Change change, const Mouse& mouse)
{
    Model& model = change.model;
    const bool is_covered = model.help || model.comparison || model.commands.form;
    if (model.question || model.prompt || is_covered) {
        return;
    }
    const Areas areas = areas_of(model);
    model.pointed_gpu = areas.gpus.has(mouse.row, mouse.column)
                            ? gpu_at(model, areas.gpus, mouse.row, mouse.column)
                            : std::nullopt;
    if (mouse.action == Mouse::Action::move) {
        return;
    }
    const bool is_wheel =
        mouse.action == Mouse::Action::wheel_up || mouse.action == Mouse::Action::wheel_down;
    const int by = mouse.action == Mouse::Action::wheel_up ? -1 : 1;
    const bool is_double = mouse.action == Mouse::Action::double_click;
    if (areas.run.has(mouse.row, mouse.column)) {
        if (shows_board(model)) {
            return on_board_mouse(change, mouse);
        }
        if (const auto tab = tab_at(model, areas.run, mouse.row, mouse.column); tab && !is_wheel) {
            set_tab(change, static_cast<int>(*tab));
        }
        model.panels.focus = is_wheel ? model.panels.focus : Panel::run;
        if (is_wheel && shows_log(model) && model.log) {
            scroll_log(*model.log, area_of_tab(model), by * k_wheel);
        } else if (is_wheel && model.panels.tab != Tab::curves) {
            on_text_key(change, Key{by > 0 ? Special::down : Special::up, 0});
        }
    } else if (area_of_lower_log(model).has(mouse.row, mouse.column)) {
        is_wheel    ? scroll_lower_log(change, by * k_wheel)
        : is_double ? open_lower_log(change)
                    : void();
    } else if (areas.runs.has(mouse.row, mouse.column)) {
        model.panels.focus = Panel::runs;
        if (is_wheel) {
            return select_run(change, selected_place(model) + by * k_wheel);
        }
        if (const std::string key = run_at(model, areas.runs, mouse.row); !key.empty()) {
            model.selected = key;
            model.commands.started.reset();
            if (is_double) {
                open_run(change);
            }
        }
    } else if (areas.gpus.has(mouse.row, mouse.column) && !is_wheel) {
        model.panels.focus = Panel::gpus;
        if (const auto gpu = gpu_at(model, areas.gpus, mouse.row, mouse.column)) {
            model.gpu = *gpu;
            if (is_double) {
                go_to_holder(change);
            }
        }
    }
}

} // namespace gpuq::tui
