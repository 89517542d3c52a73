// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/run_panel.h"

#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/board_view.h"
#include "tui/facts_tab.h"
#include "tui/layout.h"
#include "tui/log_view.h"
#include "tui/timeline_tab.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace gpuq::tui {
namespace {

/// Indentation of continuation lines.
constexpr std::string_view k_indent = "  ";
constexpr int k_least_chart_rows = 9, k_least_chart_columns = 44;
/// Of the title, beside the names of all tabs.
constexpr int k_least_name = 10;

// Curves.

/// A tag without the part that names the data set: `val/loss` and `train_loss` become `loss`.
std::string without_data_set(std::string_view tag)
{
    constexpr std::array<std::string_view, 9> k_sets = {
        "train", "training", "val", "valid", "validation", "eval", "test", "dev", "tr"};
    std::string rest;
    std::size_t at = 0;
    while (at < tag.size()) {
        const std::size_t end = std::min(tag.find_first_of("/_-. ", at), tag.size());
        const std::string_view word = tag.substr(at, end - at);
        std::string small;
        for (const char c : word) {
            small += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
        }
        if (std::find(k_sets.begin(), k_sets.end(), small) == k_sets.end()) {
            rest += (rest.empty() ? "" : "/") + small;
        }
        at = end + 1;
    }
    return rest.empty() ? std::string(tag) : rest;
}

std::vector<Plotted> plotted(const std::vector<Curve>& curves,
                             const std::vector<std::size_t>& chart, std::size_t first,
                             const Theme& theme)
{
    std::vector<Plotted> all;
    for (std::size_t i = 0; i < chart.size(); ++i) {
        const Curve& curve = curves[chart[i]];
        all.push_back({&curve, curve.title, series_style(first + i, theme)});
    }
    return all;
}

bool is_chosen(const Model& model, const std::vector<Curve>& curves,
               const std::vector<std::size_t>& chart)
{
    return model.charts.chosen.contains(curves[chart[0]].title);
}

/// The curves of the chosen charts, those over steps first and apart from those over time; without
/// a chosen one, those of the selected chart.
std::vector<std::vector<Plotted>>
chosen_curves(const Model& model, const std::vector<Curve>& curves, std::size_t selected)
{
    const auto charts = charts_of(curves);
    std::vector<std::vector<Plotted>> parts;
    for (const bool of_training : {true, false}) {
        std::vector<Plotted> part;
        for (const auto& chart : charts) {
            if (is_chosen(model, curves, chart) && curves[chart[0]].of_training == of_training) {
                const std::vector<Plotted> more = plotted(curves, chart, part.size(), model.theme);
                part.insert(part.end(), more.begin(), more.end());
            }
        }
        if (!part.empty()) {
            parts.push_back(std::move(part));
        }
    }
    if (parts.empty()) {
        parts.push_back(plotted(curves, charts[selected], 0, model.theme));
    }
    return parts;
}

/// One below the other, as many as have room.
void draw_parts(Canvas& canvas, const Rect& area, const std::vector<std::vector<Plotted>>& parts,
                const Model& model)
{
    const int count = std::clamp(static_cast<int>(parts.size()), 1,
                                 std::max(area.height / k_least_chart_rows, 1));
    const int height = area.height / count;
    for (int i = 0; i < count; ++i) {
        const Rect one{area.top + i * height, area.left, height - (i + 1 < count ? 1 : 0),
                       area.width};
        draw_chart(canvas, one, parts[static_cast<std::size_t>(i)], model.charts.view, model.theme);
    }
}

/// The charts shown together, with the selected one among them.
struct ChartPage {
    int beside = 1, rows = 1;
    int first = 0, shown = 1;
};

ChartPage page_of(const Model& model, const Rect& area, int count)
{
    ChartPage page;
    page.beside = std::clamp(area.width / k_least_chart_columns, 1, count);
    page.rows = std::clamp((count + page.beside - 1) / page.beside, 1,
                           std::max(area.height / k_least_chart_rows, 1));
    const int most = page.beside * page.rows;
    page.first = std::min(static_cast<int>(model.charts.selected), count - 1) / most * most;
    page.shown = std::min(most, count - page.first);
    return page;
}

/// Whether only the selected chart is shown, or one of the chosen curves.
bool is_single(const Model& model, const Rect& area)
{
    return model.charts.single || area.height < 2 * k_least_chart_rows;
}

/// `charts 3-4 of 7 (j k)`; empty if all are shown.
std::string page_text(const Model& model, const Rect& area)
{
    const Detail* const detail = selected_detail(model);
    const int count = detail == nullptr ? 0 : static_cast<int>(charts_of(detail->curves).size());
    if (count < 2 || (is_single(model, area) && !model.charts.chosen.empty())) {
        return "";
    }
    const int selected = std::min(static_cast<int>(model.charts.selected), count - 1);
    const ChartPage page =
        is_single(model, area) ? ChartPage{1, 1, selected, 1} : page_of(model, area, count);
    return page.shown == count ? ""
           : page.shown == 1   ? fmt::format("chart {} of {} (j k)", page.first + 1, count)
                               : fmt::format("charts {}-{} of {} (j k)", page.first + 1,
                                             page.first + page.shown, count);
}

void draw_curves(Canvas& canvas, const Rect& area, const Model& model)
{
    const Detail* const detail = selected_detail(model);
    if (detail == nullptr || detail->curves.empty()) {
        const char* const text =
            detail == nullptr ? k_reading
                              : "no curves yet: gpuq reads them from the output (loss 0.31), "
                                "TensorBoard's event files, metrics.csv and trainer_state.json";
        const auto lines = broken(text, static_cast<std::size_t>(std::max(area.width, 1)));
        for (std::size_t i = 0; i < lines.size(); ++i) {
            canvas.put(area.top + static_cast<int>(i), area.left, Line{{lines[i], dim()}},
                       area.width);
        }
        return;
    }
    const auto charts = charts_of(detail->curves);
    const std::size_t selected = std::min(model.charts.selected, charts.size() - 1);
    if (is_single(model, area)) {
        draw_parts(canvas, area, chosen_curves(model, detail->curves, selected), model);
        return;
    }
    const ChartPage page = page_of(model, area, static_cast<int>(charts.size()));
    const int height = area.height / page.rows, width = area.width / page.beside;
    for (int i = 0; i < page.shown; ++i) {
        const auto number = static_cast<std::size_t>(page.first + i);
        const Rect one{area.top + i / page.beside * height, area.left + i % page.beside * width,
                       height - 1, width - 2};
        draw_chart(canvas, one, plotted(detail->curves, charts[number], 0, model.theme),
                   model.charts.view, model.theme);
        if (is_chosen(model, detail->curves, charts[number])) {
            canvas.put(one.top, one.left + one.width - 1, model.theme.ascii ? "*" : "●");
        }
        if (number == selected && model.panels.focus == Panel::run) {
            canvas.tint(one.top, one.left, one.width, marked());
        }
    }
}

// GPUs.

std::vector<Line> gpu_use_lines(const Model& model, int columns)
{
    const Detail* const detail = selected_detail(model);
    if (detail == nullptr) {
        return {{{k_reading, dim()}}};
    }
    if (detail->gpus.empty()) {
        return {{{"no measurements of its GPUs", dim()}}};
    }
    std::size_t name = 0;
    for (const GpuUse& gpu : detail->gpus) {
        name = std::max(name, cells(sanitised(gpu.name)));
    }
    const int width = std::clamp((columns - static_cast<int>(name)) / 5, 6, 24);
    std::vector<Line> lines;
    for (const GpuUse& gpu : detail->gpus) {
        const std::string shown = sanitised(gpu.name);
        Line line{{shown + std::string(name - cells(shown) + 2, ' '), bold()}};
        for (const auto& share : {gpu.busy, gpu.memory}) {
            if (!gpu.busy && !gpu.memory) {
                break; // the text has the reason
            }
            line.push_back({share ? bar(*share, width, model.theme)
                                  : std::string(static_cast<std::size_t>(width), '?'),
                            share ? heat(*share, model.theme) : dim()});
            line.push_back({"  ", {}});
        }
        const auto room = columns - static_cast<int>(cells(text_of(line)));
        line.push_back(
            {clipped(sanitised(gpu.text), static_cast<std::size_t>(std::max(room, 1))), {}});
        lines.push_back(std::move(line));
    }
    return lines;
}

void draw_gpu_uses(Canvas& canvas, const Rect& area, const Model& model)
{
    const std::vector<Line> lines = gpu_use_lines(model, area.width);
    const int shown = std::min(static_cast<int>(lines.size()), area.height);
    canvas.put_lines({area.top, area.left, shown, area.width}, lines, model.panels.scroll);
    shade(canvas, {area.top, area.left, shown, area.width}, model.theme);
    const Detail* const detail = selected_detail(model);
    if (detail == nullptr) {
        return;
    }
    std::vector<Curve> of_machine;
    for (const Curve& curve : detail->curves) {
        if (!curve.of_training) {
            of_machine.push_back(curve);
        }
    }
    (void)draw_small_curves(canvas,
                            {area.top + shown + 1, area.left, area.height - shown - 1, area.width},
                            of_machine, model.theme);
}

// The panel.

std::string run_name(const RunRow& run)
{
    return fmt::format("{} {} ({})", run.plain ? "job" : "run", sanitised(run.id),
                       sanitised(run.name));
}

/// The names of the tabs with their columns in the upper edge of the panel.
struct TabPlace {
    Tab tab;
    int column, width;
};

std::vector<TabPlace> tab_places(const Model& model, const Rect& panel, Line* title)
{
    const RunRow* const run = selected_run(model);
    const int room = panel.width - 6;
    int names = 0;
    for (int i = 0; i <= static_cast<int>(k_last_tab); ++i) {
        names += static_cast<int>(name_of(static_cast<Tab>(i)).size()) + 1;
    }
    const bool is_narrow = room < names + k_least_name + 1;
    if (is_narrow) {
        names = static_cast<int>(name_of(model.panels.tab).size()) + 2;
    }
    const std::string begin =
        clipped("3 " + (run == nullptr ? "Run" : run_name(*run)),
                static_cast<std::size_t>(std::max(room - names - 1, std::min(room, k_least_name))));
    int column = panel.left + 3 + static_cast<int>(cells(begin)) + 2;
    if (title != nullptr) {
        title->push_back({begin + "  ", bold()});
    }
    if (is_narrow) { // the selected one, within the keys that lead to the others
        if (title != nullptr) {
            title->push_back({fmt::format("[{}]", name_of(model.panels.tab)), marked()});
        }
        return {{model.panels.tab, column, names}};
    }
    std::vector<TabPlace> places;
    for (int i = 0; i <= static_cast<int>(k_last_tab); ++i) {
        const Tab tab = static_cast<Tab>(i);
        const std::string name(name_of(tab));
        places.push_back({tab, column, static_cast<int>(name.size())});
        column += static_cast<int>(name.size()) + 1;
        if (title != nullptr) {
            title->push_back({name, tab == model.panels.tab ? marked() : dim()});
            if (tab != k_last_tab) {
                title->push_back({" ", {}});
            }
        }
    }
    return places;
}

/// Which part of the tab is shown, and the settings of charts.
Line tab_state(const Model& model, const Rect& area)
{
    const Tab tab = model.panels.tab;
    if (tab == Tab::timeline || tab == Tab::gpus) {
        const int lines = static_cast<int>(lines_of_tab(model, area.width).size());
        const int first = std::min(model.panels.scroll, std::max(lines - area.height, 0));
        return lines <= area.height ? Line{}
                                    : line_of(fmt::format("lines {}-{} of {} (j k)", first + 1,
                                                          first + area.height, lines));
    }
    if (tab != Tab::curves) {
        return {};
    }
    const std::string page = page_text(model, area);
    const std::string settings = settings_text(model.charts.view);
    return line_of(page + (page.empty() || settings.empty() ? "" : ", ") + settings);
}

/// The panel while a sweep is selected.
void draw_sweep(Canvas& canvas, const Rect& panel, const Model& model, const RunRow& run)
{
    const Line title{{fmt::format("3 sweep {}  ", sanitised(run.name)), bold()},
                     {model.board.log ? "Log" : board_title(model), {}}};
    draw_frame(canvas, panel, title, {}, model.panels.focus == Panel::run, model.theme);
    const Rect area = inside(panel);
    if (area.height < 1 || area.width < 1) {
        return;
    }
    if (!model.board.log) {
        draw_board(canvas, area, model);
    } else if (model.log) {
        draw_log(canvas, area, *model.log, model.found);
    }
}

} // namespace

std::vector<std::string> broken(std::string_view text, std::size_t columns)
{
    const std::string safe = sanitised(text);
    std::string_view rest_of_text = safe;
    std::vector<std::string> lines;
    std::string line;
    std::size_t used = 0;
    std::size_t blank = std::string::npos; // the last blank in `line`
    while (!rest_of_text.empty()) {
        const std::string_view glyph = take_glyph(rest_of_text);
        if (used + cells(glyph) > columns && used > k_indent.size()) {
            const std::size_t end = glyph == " " ? line.size() : std::min(blank, line.size());
            const std::string rest = line.substr(std::min(end + 1, line.size()));
            lines.push_back(line.substr(0, end));
            line = std::string(k_indent) + rest;
            used = cells(line);
            blank = std::string::npos;
            if (rest.empty() && glyph == " ") {
                continue;
            }
        }
        if (glyph == " " && used > k_indent.size()) {
            blank = line.size();
        }
        line += glyph;
        used += cells(glyph);
    }
    lines.push_back(line);
    return lines;
}

std::string_view name_of(Tab tab)
{
    constexpr std::string_view k_names[] = {"Log", "Curves", "GPUs", "Facts", "Timeline"};
    return k_names[static_cast<std::size_t>(tab)];
}

std::vector<std::vector<std::size_t>> charts_of(const std::vector<Curve>& curves)
{
    std::vector<std::vector<std::size_t>> charts;
    std::map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < curves.size(); ++i) {
        if (!curves[i].of_training) {
            charts.push_back({i});
            continue;
        }
        const auto [place, is_new] =
            known.emplace(without_data_set(curves[i].title), charts.size());
        if (is_new) {
            charts.push_back({i});
        } else {
            charts[place->second].push_back(i);
        }
    }
    return charts;
}

std::vector<Line> lines_of_tab(const Model& model, int columns)
{
    const RunRow* const run = selected_run(model);
    if (run == nullptr) {
        return {};
    }
    switch (model.panels.tab) {
    case Tab::facts:
        return fact_lines(model, *run, columns);
    case Tab::gpus:
        return gpu_use_lines(model, columns);
    case Tab::timeline:
        return timeline_lines(model, columns);
    case Tab::log:
    case Tab::curves:
        break;
    }
    return {};
}

int last_scroll(const Model& model, const Rect& area)
{
    const int lines = static_cast<int>(lines_of_tab(model, area.width).size());
    // After the first step the facts have the rows of the curves as well.
    const bool is_cut = model.panels.tab == Tab::facts && lines > room_for_facts(model, area);
    return std::max(lines - area.height, is_cut ? 1 : 0);
}

void draw_run(Canvas& canvas, const Rect& panel, const Model& model)
{
    if (const RunRow* const sweep = selected_run(model); sweep != nullptr && sweep->sweep) {
        return draw_sweep(canvas, panel, model, *sweep);
    }
    Line title;
    (void)tab_places(model, panel, &title);
    const RunRow* const run = selected_run(model);
    if (run == nullptr) {
        title = {{"3 Run", bold()}};
    }
    draw_frame(canvas, panel, title, tab_state(model, inside(panel)),
               model.panels.focus == Panel::run, model.theme);
    const Rect area = inside(panel);
    if (run == nullptr || area.height < 1 || area.width < 1) {
        return;
    }
    switch (model.panels.tab) {
    case Tab::log:
        if (model.log) {
            draw_log(canvas, area, *model.log, model.found);
        }
        return;
    case Tab::curves:
        return draw_curves(canvas, area, model);
    case Tab::gpus:
        return draw_gpu_uses(canvas, area, model);
    case Tab::facts:
        return draw_facts(canvas, area, model, *run);
    case Tab::timeline: {
        const std::vector<Line> lines = timeline_lines(model, area.width);
        return canvas.put_lines(area, lines, model.panels.scroll);
    }
    }
}

std::optional<Tab> tab_at(const Model& model, const Rect& panel, int row, int column)
{
    const RunRow* const run = selected_run(model);
    if (row != panel.top || (run != nullptr && run->sweep)) {
        return std::nullopt;
    }
    for (const TabPlace& place : tab_places(model, panel, nullptr)) {
        if (column >= place.column && column < place.column + place.width) {
            return place.tab;
        }
    }
    return std::nullopt;
}

} // namespace gpuq::tui
