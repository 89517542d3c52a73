// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/comparison_view.h"

#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/base/table_lines.h"
#include "tui/layout.h"
#include "tui/run_panel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::tui {
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

Rect area_of(const Model& model)
{
    return {1, 0, model.size.rows - 2, model.size.columns};
}

/// At least half of the rows, and those that the tables do not need; none if these are too few.
int chart_rows(const Comparison& compared, int lines, int rows)
{
    const int chart = compared.metrics.empty() ? 0 : std::max(rows / 2, rows - lines);
    return chart < 4 ? 0 : chart; // as draw_chart
}

/// `chart 1 of 2 (j k), lines 1-9 of 15 (Ctrl-D), log scale, as of 12:00:00`.
std::string bottom_text(const Model& model, bool has_chart, int first, int rows)
{
    const Comparison& compared = *model.comparison;
    const int last = last_comparison_line(model);
    std::vector<std::string> parts{
        has_chart && compared.metrics.size() > 1
            ? fmt::format("chart {} of {} (j k)", model.charts.selected + 1,
                          compared.metrics.size())
            : "",
        last > 0 ? fmt::format("lines {}-{} of {} (Ctrl-D)", first + 1, first + rows, last + rows)
                 : "",
        settings_text(model.charts.view),
        compared.at ? "as of " + moment_text(*compared.at, model.now) : ""};
    std::erase(parts, "");
    return fmt::format("{}", fmt::join(parts, ", "));
}

} // namespace

int last_comparison_line(const Model& model)
{
    const Rect inner = inside(area_of(model));
    const auto lines = static_cast<int>(table_lines(model.comparison->tables, inner.width).size());
    const int room = inner.height - chart_rows(*model.comparison, lines, inner.height);
    return std::max(lines - 1 - room, 0); // the last line is empty
}

void draw_comparison(Canvas& canvas, const Model& model)
{
    const Comparison& compared = *model.comparison;
    const Rect area = area_of(model);
    Line title{{"Compare  ", bold()}};
    const std::vector<std::string> titles =
        names_for(compared.names, area.width - k_around_names, k_beside_title);
    for (std::size_t i = 0; i < titles.size(); ++i) {
        title.push_back({model.theme.ascii ? "* " : "━ ", series_style(i, model.theme)});
        title.push_back({sanitised(titles[i]) + "  ", {}});
    }
    const Rect inner = inside(area);
    const std::vector<Line> lines = table_lines(compared.tables, inner.width);
    const int chart = chart_rows(compared, static_cast<int>(lines.size()), inner.height);
    const Rect tables{inner.top + chart, inner.left, inner.height - chart, inner.width};
    const int first = std::min(model.panels.scroll, last_comparison_line(model));
    draw_frame(canvas, area, title, line_of(bottom_text(model, chart > 0, first, tables.height)),
               true, model.theme);
    if (!compared.trouble.empty() || compared.names.empty()) {
        canvas.put(inner.top, inner.left,
                   Line{{compared.trouble.empty() ? k_reading : sanitised(compared.trouble), {}}},
                   inner.width);
        return;
    }
    if (chart > 0) {
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
    canvas.put_lines(tables, lines, first);
}

} // namespace gpuq::tui
