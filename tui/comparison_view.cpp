// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/comparison_view.h"

#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/base/table_lines.h"
#include "tui/layout.h"
#include "tui/run_panel.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::tui {

std::vector<Line> lines_of_comparison(const Comparison& compared, int columns)
{
    std::vector<Line> lines;
    for (const report::Table& table : compared.tables) {
        for (Line& line : table_lines(table, columns)) {
            lines.push_back(std::move(line));
        }
        lines.emplace_back();
    }
    return lines;
}

namespace {

/// `Compare` and the corners, in the upper edge.
constexpr int k_around_names = 16;
/// Of a run in the title, beside its name: `━   `.
constexpr std::size_t k_beside_title = 4;
/// Of a curve in the legend, beside its name and the metric: `━  0.0012  `.
constexpr std::size_t k_beside_name = 12;

/// `4711 (train)`, or only `4711` if the others would not fit beside it, each with `beside` columns
/// more.
std::vector<std::string> names_for(const std::vector<std::string>& names, int columns,
                                   std::size_t beside)
{
    std::size_t wanted = 0;
    for (const std::string& name : names) {
        wanted += cells(sanitised(name)) + beside;
    }
    std::vector<std::string> shown = names;
    if (wanted > static_cast<std::size_t>(std::max(columns, 0))) {
        for (std::string& name : shown) {
            name.resize(std::min(name.find(" ("), name.size()));
        }
    }
    return shown;
}

} // namespace

void draw_comparison(Canvas& canvas, const Rect& area, const Model& model)
{
    const Comparison& compared = *model.comparison;
    Line title{{"Compare  ", bold()}};
    const std::vector<std::string> titles =
        names_for(compared.names, area.width - k_around_names, k_beside_title);
    for (std::size_t i = 0; i < titles.size(); ++i) {
        title.push_back({model.theme.ascii ? "* " : "━ ", series_style(i, model.theme)});
        title.push_back({sanitised(titles[i]) + "  ", {}});
    }
    std::string bottom = settings_text(model.charts.view);
    if (compared.at) {
        bottom += fmt::format("{}as of {}", bottom.empty() ? "" : ", ",
                              moment_text(*compared.at, model.now));
    }
    draw_frame(canvas, area, title, line_of(bottom), true, model.theme);
    const Rect inner = inside(area);
    if (!compared.trouble.empty() || compared.names.empty()) {
        canvas.put(inner.top, inner.left,
                   Line{{compared.trouble.empty() ? k_reading : sanitised(compared.trouble), {}}},
                   inner.width);
        return;
    }
    const std::vector<Line> lines = lines_of_comparison(compared, inner.width);
    // At least half for the chart, and the rows that the tables do not need.
    const int chart = std::max(inner.height / 2, inner.height - static_cast<int>(lines.size()));
    if (!compared.metrics.empty()) {
        const auto& metric =
            compared.metrics[std::min(model.charts.selected, compared.metrics.size() - 1)];
        std::vector<Plotted> all;
        const std::vector<std::string> names =
            names_for(compared.names, inner.width, cells(metric.title) + k_beside_name);
        for (std::size_t i = 0; i < metric.curves.size(); ++i) {
            if (!metric.curves[i].dots.empty()) {
                const std::string name = i < names.size() ? names[i] : "";
                all.push_back({&metric.curves[i], fmt::format("{} {}", name, metric.title),
                               series_style(i, model.theme)});
            }
        }
        draw_chart(canvas, {inner.top, inner.left, chart, inner.width}, all, model.charts.view,
                   model.theme);
    }
    const int first = inner.top + (compared.metrics.empty() ? 0 : chart);
    canvas.put_lines({first, inner.left, inner.bottom() - first + 1, inner.width}, lines,
                     model.panels.scroll);
}

} // namespace gpuq::tui
