// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/pages/comparison_page.h"

#include "cli/render/run_table.h"
#include "report/chart.h"
#include "report/ending_text.h"
#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace gpuq::cli {
namespace {

using report::Chart;
using report::html_text;

static_assert(Comparison::k_most_runs <= report::k_most_lines);

std::string wide_tables(std::string_view title, const std::vector<report::Table>& tables,
                        std::string_view caption)
{
    std::string text;
    for (const report::Table& table : tables) {
        text += fmt::format("<div class=\"wide-table\">{}</div>\n",
                            report::html_table(table, text.empty() ? caption : ""));
    }
    return text.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", html_text(title), text);
}

/// From 0 or the first step to the last step, so that the curves use the whole width.
report::Axis axis_of_steps(double first, double last)
{
    report::Axis axis = first <= last / 2 ? report::axis_from_zero("step", last)
                                          : report::axis_between("step", first, last);
    if (last > axis.low) {
        axis.high = last;
        std::erase_if(axis.ticks, [&](const report::Tick& tick) { return tick.at > last; });
    }
    return axis;
}

/// A curve for each run with this metric, and an empty one for each of the others: a run has the
/// same colour in all charts.
std::string metric_figure(const Comparison& comparison, std::size_t index)
{
    const ComparedMetric& metric = comparison.metrics[index];
    Chart chart;
    chart.id = fmt::format("metric-{}", index);
    chart.title = metric.name;
    chart.lines = Chart::Lines::several;
    std::vector<std::string> names;
    constexpr double k_infinite = std::numeric_limits<double>::infinity();
    double low = k_infinite, high = -low, first = k_infinite, last = -first;
    for (std::size_t i = 0; i < metric.runs.size(); ++i) {
        auto& curve = chart.curves.emplace_back();
        names.push_back(metric.runs[i] ? run_title(comparison.runs[i].status) : "");
        if (!metric.runs[i]) {
            continue;
        }
        for (const telemetry::Point& point : metric.runs[i]->curve) {
            const auto step = static_cast<double>(point.step);
            curve.push_back({step, point.value});
            if (std::isfinite(point.value)) {
                low = std::min(low, point.value);
                high = std::max(high, point.value);
                first = std::min(first, step);
                last = std::max(last, step);
            }
        }
    }
    if (!std::isfinite(low)) {
        return fmt::format("<h2>{}</h2>\n<p class=\"soft\">No finite value.</p>\n",
                           html_text(metric.name));
    }
    chart.x = axis_of_steps(first, last);
    chart.y = report::axis_between(metric.name, low, high);
    chart.description = best_text(comparison, metric);
    const std::string caption =
        chart.description.empty()
            ? ""
            : fmt::format("<figcaption>{}</figcaption>\n", html_text(chart.description));
    return fmt::format("<h2>{}</h2>\n<figure>\n{}{}{}</figure>\n", html_text(metric.name), caption,
                       report::html_legend(names, Chart::Lines::several),
                       report::html_chart(chart));
}

} // namespace

std::string comparison_page(const WholeComparison& whole, Time now)
{
    const Comparison& comparison = whole.comparison;
    const std::string title = fmt::format("Comparison of {} runs", comparison.runs.size());
    std::string body = fmt::format("<h1>{}</h1>\n", title);
    for (const std::string& warning : whole.warnings) {
        body += fmt::format("<p class=\"soft\">{}</p>\n", html_text(warning));
    }
    body += wide_tables("Runs", {compared_runs_table(comparison, now)}, "");
    body += wide_tables("Settings", settings_tables(comparison),
                        "Only those that differ. -: absent, ?: unknown.");
    body += wide_tables("Metrics", metrics_tables(comparison), "Each value with its step.");
    for (const std::string& note : comparison_notes(comparison)) {
        body += fmt::format("<p class=\"soft\">{}</p>\n", html_text(note));
    }
    for (std::size_t i = 0; i < comparison.metrics.size(); ++i) {
        body += metric_figure(comparison, i);
    }
    body += fmt::format("<footer>\n<p>Made on {} by gpuq {} show --compare; see man gpuq-show for "
                        "the terms. A gap in a curve: NaN, infinite values or a restart.</p>\n"
                        "</footer>\n",
                        html_text(moment_text(now, Time())), GPUQ_VERSION);
    return report::html_page(title, body);
}

} // namespace gpuq::cli
