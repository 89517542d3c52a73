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

void draw_comparison(Canvas& canvas, const Rect& area, const Model& model)
{
    const Comparison& compared = *model.comparison;
    Line title{{"Compare  ", bold()}};
    for (std::size_t i = 0; i < compared.names.size(); ++i) {
        title.push_back({model.theme.ascii ? "* " : "━ ", series_style(i, model.theme)});
        title.push_back({sanitised(compared.names[i]) + "  ", {}});
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
        for (std::size_t i = 0; i < metric.curves.size(); ++i) {
            if (!metric.curves[i].dots.empty()) {
                const std::string name = i < compared.names.size() ? compared.names[i] : "";
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
