// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_comparison.h"

#include "cli/render/comparison_text.h"
#include "cli/render/run_table.h"

#include <cmath>
#include <utility>

namespace gpuq::cli {
namespace {

tui::Curve curve_of(const MetricOfRun& metric)
{
    tui::Curve curve{metric.tag, "", {}, true};
    for (const telemetry::Point& point : metric.curve) {
        curve.dots.push_back(
            {static_cast<double>(point.step), point.at,
             std::isfinite(point.value) ? std::optional(point.value) : std::nullopt});
    }
    return curve;
}

} // namespace

tui::Comparison top_comparison(const Comparison& comparison, Time now)
{
    tui::Comparison shown;
    for (const ComparedRun& run : comparison.runs) {
        shown.keys.push_back(run.status.key.text());
        shown.names.push_back(run_title(run.status));
    }
    shown.tables.push_back(compared_runs_table(comparison, now));
    for (auto tables : {settings_tables(comparison), metrics_tables(comparison)}) {
        for (report::Table& table : tables) {
            shown.tables.push_back(std::move(table));
        }
    }
    for (const ComparedMetric& metric : comparison.metrics) {
        tui::Comparison::Metric& drawn = shown.metrics.emplace_back();
        drawn.title = metric.name;
        for (const auto& run : metric.runs) {
            drawn.curves.push_back(run ? curve_of(*run) : tui::Curve{});
        }
    }
    return shown;
}

} // namespace gpuq::cli
