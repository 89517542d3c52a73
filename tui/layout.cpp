// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/layout.h"

#include "term/sanitise.h"
#include "tui/gpu_panel.h"

#include <algorithm>

namespace gpuq::tui {
namespace {

/// The status line and the line of keys.
constexpr int k_other_rows = 2;
constexpr int k_least_rows = 7, k_least_columns = 24;
/// Less shows only the focused panel.
constexpr int k_rows_for_panels = 18, k_columns_for_panels = 60;
/// More shows the run beside the lists.
constexpr int k_columns_for_two = 150;
/// The panel of the list with all its columns, and the least width of the run beside it.
constexpr int k_columns_of_list = 124, k_least_beside = 76;
/// Less shows nothing below the list.
constexpr int k_least_lower = 6;
constexpr int k_border = 2;
constexpr int k_least_panel = 3;
/// Header of the list.
constexpr int k_header = 1;
constexpr int k_least_run = 9;
/// Advice for an empty list.
constexpr int k_rows_of_advice = 6;

/// With an ellipsis if it is longer.
Line clipped_line(const Line& line, std::size_t columns)
{
    if (cells(text_of(line)) <= columns) {
        return line;
    }
    Line shown;
    std::size_t room = columns - 1; // for the ellipsis
    for (const Span& span : line) {
        shown.push_back({"", span.style});
        std::string_view rest = span.text;
        while (!rest.empty()) {
            const std::string_view glyph = take_glyph(rest);
            if (cells(glyph) > room) {
                shown.back().text += "…";
                return shown;
            }
            room -= cells(glyph);
            shown.back().text += glyph;
        }
    }
    return shown;
}

int height_of_gpus(const Model& model, int width, int most)
{
    const int lines = gpu_lines(model, width - k_border, most - k_border);
    return std::clamp(lines + k_border, k_least_panel, std::max(most, k_least_panel));
}

int wanted_for_runs(const Model& model)
{
    const int groups = model.list.grouped ? static_cast<int>(model.shown.size() / 2) + 1 : 0;
    return model.shown.empty()
               ? k_rows_of_advice + k_border
               : static_cast<int>(model.shown.size()) + groups + k_header + k_border;
}

/// The list, with the rows that it needs, up to two thirds, and below it another part of the
/// selected run; the run's panel beside them.
Areas areas_beside(const Model& model, const Rect& all, int most_gpus)
{
    const int left =
        std::max(all.width / 2, std::min(k_columns_of_list, all.width - k_least_beside));
    const int gpus = height_of_gpus(model, left, most_gpus);
    const int rest = all.height - gpus;
    const int least = k_least_panel + k_header;
    const int wanted = std::clamp(wanted_for_runs(model), least, std::max(rest * 2 / 3, least));
    const bool has_lower = !model.shown.empty() && rest - wanted >= k_least_lower;
    const int runs = has_lower ? wanted : rest;
    Areas areas;
    areas.gpus = {all.top, all.left, gpus, left};
    areas.runs = {all.top + gpus, all.left, runs, left};
    areas.lower = {all.top + gpus + runs, all.left, rest - runs, left};
    areas.run = {all.top, all.left + left, all.height, all.width - left};
    return areas;
}

} // namespace

Areas areas_of(const Model& model)
{
    const int rows = model.size.rows, columns = model.size.columns;
    Areas areas;
    if (rows < k_least_rows || columns < k_least_columns) {
        areas.tiny = true;
        return areas;
    }
    const Rect all{1, 0, rows - k_other_rows, columns};
    if (model.panels.full || rows < k_rows_for_panels || columns < k_columns_for_panels) {
        (model.panels.focus == Panel::gpus   ? areas.gpus
         : model.panels.focus == Panel::runs ? areas.runs
                                             : areas.run) = all;
        return areas;
    }
    // Independent of the focus: a click must not move its target.
    const int most_gpus = all.height / 4 + 1;
    if (columns >= k_columns_for_two) {
        return areas_beside(model, all, most_gpus);
    }
    const int gpus = height_of_gpus(model, columns, most_gpus);
    const int rest = all.height - gpus;
    // The list has half of the rest, and the rows that the run does not need.
    const int most_runs = std::max(rest / 2, rest - 2 * k_least_run);
    const int runs = std::clamp(wanted_for_runs(model), k_least_panel + k_header,
                                std::max(most_runs, k_least_panel + k_header));
    areas.gpus = {all.top, 0, gpus, columns};
    areas.runs = {all.top + gpus, 0, runs, columns};
    areas.run = {all.top + gpus + runs, 0, rest - runs, columns};
    return areas;
}

Rect inside(const Rect& panel)
{
    return {panel.top + 1, panel.left + 1, std::max(panel.height - k_border, 0),
            std::max(panel.width - k_border, 0)};
}

int rows_for_runs(const Model& model)
{
    const Areas areas = areas_of(model);
    return areas.tiny ? std::max(model.size.rows - k_other_rows - k_header, 1)
                      : std::max(inside(areas.runs).height - k_header, 1);
}

Rect area_of_tab(const Model& model)
{
    const Areas areas = areas_of(model);
    if (areas.tiny) {
        return {1, 0, std::max(model.size.rows - k_other_rows, 1), model.size.columns};
    }
    Rect area = inside(areas.run);
    area.height = std::max(area.height, 1);
    area.width = std::max(area.width, 1);
    return area;
}

void draw_frame(Canvas& canvas, const Rect& panel, const Line& title, const Line& bottom,
                bool focused, const Theme& theme)
{
    if (panel.height < 2 || panel.width < 2) {
        return;
    }
    const bool ascii = theme.ascii;
    Style style = focused ? coloured(k_cyan) : dim();
    style.bold = focused;
    std::string line;
    for (int i = 0; i < panel.width - k_border; ++i) {
        line += ascii ? (focused ? "=" : "-") : focused ? "━" : "─";
    }
    const int last = panel.left + panel.width - 1;
    const auto edge = [&](int row, std::string_view left, std::string_view right) {
        canvas.put(row, panel.left, left, style);
        canvas.put(row, panel.left + 1, line, style);
        canvas.put(row, last, right, style);
    };
    edge(panel.top, ascii ? "+" : focused ? "┏" : "╭", ascii ? "+" : focused ? "┓" : "╮");
    edge(panel.bottom(), ascii ? "+" : focused ? "┗" : "╰", ascii ? "+" : focused ? "┛" : "╯");
    for (int row = panel.top + 1; row < panel.bottom(); ++row) {
        canvas.put(row, panel.left, ascii ? "|" : focused ? "┃" : "│", style);
        canvas.put(row, last, ascii ? "|" : focused ? "┃" : "│", style);
    }
    const int room = panel.width - 4;
    for (const auto& [row, text] : {std::pair{panel.top, &title}, {panel.bottom(), &bottom}}) {
        if (room > 2 && !text->empty()) {
            int at = canvas.put(row, panel.left + 2, " ", {});
            at = canvas.put(row, at, clipped_line(*text, static_cast<std::size_t>(room - 2)),
                            room - 2);
            canvas.put(row, at, " ", {});
        }
    }
}

} // namespace gpuq::tui
