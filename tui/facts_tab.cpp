// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/facts_tab.h"

#include "tui/base/chart.h"
#include "tui/run_panel.h"
#include "tui/timeline_tab.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>

namespace gpuq::tui {
namespace {

constexpr int k_small_curve = 4, k_least_small_curve = 3, k_most_small_curve = 10;
constexpr int k_narrowest_curve = 30;
constexpr int k_least_facts = 4;
constexpr int k_least_history = 5;
constexpr int k_bar = 30;
constexpr int k_columns_for_two_bars = 60;
/// ` 100 % of its steps  `
constexpr int k_bar_text = 21;

std::vector<std::string> facts_of(const Model& model, const RunRow& run)
{
    std::vector<std::string> facts = run.facts;
    if (const Detail* const detail = selected_detail(model)) {
        // Those that change most directly follow the first fact.
        facts.insert(facts.begin() + (facts.empty() ? 0 : 1), detail->facts.begin(),
                     detail->facts.end());
    }
    return facts;
}

/// The progress of the training and the used part of its time; one of them if the other is unknown
/// or the panel is narrow.
Line progress_line(const Model& model, const RunRow& run, int columns)
{
    const Detail* const detail = selected_detail(model);
    std::vector<std::tuple<double, const char*, Style>> parts;
    if (detail != nullptr && detail->progress) {
        parts.emplace_back(*detail->progress, "of its steps", coloured(k_green));
    }
    if (run.part && (parts.empty() || columns >= k_columns_for_two_bars)) {
        parts.emplace_back(*run.part, "of its time", coloured(k_cyan));
    }
    const int width = std::min(k_bar, parts.size() == 2 ? columns / 2 - k_bar_text : columns / 2);
    Line line;
    for (const auto& [part, what, style] : parts) {
        const double share = std::clamp(part, 0.0, 1.0);
        line.push_back({bar(share, width, model.theme), style});
        line.push_back({fmt::format(" {:.0f} % {}  ", 100 * share, what), {}});
    }
    return line;
}

int rows_for_small_curves(const Model& model, const Rect& area)
{
    const Detail* const detail = selected_detail(model);
    if (detail == nullptr || detail->curves.empty()) {
        return 0;
    }
    return area.height >= 3 * k_small_curve ? k_small_curve : k_least_small_curve;
}

/// The timeline in the rows that nothing else needs.
void draw_history(Canvas& canvas, const Rect& area, const Model& model)
{
    const Detail* const detail = selected_detail(model);
    if (area.height >= k_least_history && detail != nullptr && !detail->events.empty()) {
        canvas.put_lines(area, timeline_lines(model, area.width), 0);
    }
}

} // namespace

std::vector<Line> fact_lines(const Model& model, const RunRow& run, int columns)
{
    std::vector<Line> lines;
    if (Line progress = progress_line(model, run, columns); run.active && !progress.empty()) {
        lines.push_back(std::move(progress));
    }
    for (const std::string& fact : facts_of(model, run)) {
        for (std::string& part : broken(fact, static_cast<std::size_t>(std::max(columns, 1)))) {
            lines.push_back({{std::move(part), {}}});
        }
    }
    return lines;
}

int room_for_facts(const Model& model, const Rect& area)
{
    return std::min(area.height,
                    std::max(k_least_facts, area.height - rows_for_small_curves(model, area)));
}

int draw_small_curves(Canvas& canvas, const Rect& area, const std::vector<Curve>& curves,
                      const Theme& theme)
{
    const int count = static_cast<int>(curves.size());
    if (count == 0 || area.height < 2) {
        return 0;
    }
    const int most_beside = std::clamp(area.width / k_narrowest_curve, 1, count);
    int beside = 1;
    const auto lines = [&] { return (count + beside - 1) / beside; };
    while (beside < most_beside && lines() * k_small_curve > area.height) {
        ++beside;
    }
    const int width = area.width / beside;
    const int least = std::min(area.height, k_least_small_curve);
    const int height = std::clamp(area.height / lines(), least, k_most_small_curve);
    for (int i = 0; i < count; ++i) {
        const Rect one{area.top + i / beside * height, area.left + i % beside * width, height,
                       width - 1};
        if (one.bottom() > area.bottom()) {
            return i / beside * height;
        }
        draw_curve(canvas, one, curves[static_cast<std::size_t>(i)],
                   series_style(static_cast<std::size_t>(i), theme), theme);
    }
    return lines() * height;
}

void draw_facts(Canvas& canvas, const Rect& area, const Model& model, const RunRow& run)
{
    const std::vector<Line> lines = fact_lines(model, run, area.width);
    const int count = static_cast<int>(lines.size());
    const int room = room_for_facts(model, area);
    const bool is_cut = count > room;
    if (is_cut && model.panels.scroll > 0) {
        return canvas.put_lines(area, lines,
                                std::min(model.panels.scroll, std::max(count - area.height, 0)));
    }
    const int shown = is_cut ? room - 1 : count;
    canvas.put_lines({area.top, area.left, shown, area.width}, lines, 0);
    int row = area.top + shown;
    if (is_cut && room > 0) {
        const char* const keys = model.panels.tab != Tab::facts     ? ""
                                 : model.panels.focus == Panel::run ? "j scrolls, "
                                                                    : "3 and j scroll, ";
        canvas.put(row++, area.left,
                   Line{{fmt::format("{} more lines: {}v shows all", count - shown, keys), dim()}},
                   area.width);
    }
    if (const Detail* const detail = selected_detail(model)) {
        const Rect rest{row, area.left, area.bottom() - row + 1, area.width};
        row += draw_small_curves(canvas, rest, detail->curves, model.theme) + 1;
        draw_history(canvas, {row, area.left, area.bottom() - row + 1, area.width}, model);
    }
}

} // namespace gpuq::tui
