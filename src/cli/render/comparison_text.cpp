// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/comparison_text.h"

#include "cli/render/run_table.h"
#include "core/number.h"
#include "report/ending_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace gpuq::cli {
namespace {

using report::Cell;
using report::Column;
using report::Json;
using report::Table;
using telemetry::Better;
using telemetry::Point;

/// Runs that fit next to each other on a screen of 80 columns.
constexpr std::size_t k_most_columns = 4;

/// A line of a comparison: a value for each run.
struct Line {
    std::string name;
    std::vector<Cell> cells;
};

/// A column for each run, a row for each line.
Table with_runs_as_columns(const Comparison& comparison, const std::string& title,
                           const std::vector<Line>& lines)
{
    Table table;
    table.columns.push_back({title, title, Column::Align::left, Column::Shrink::yes});
    for (const ComparedRun& run : comparison.runs) {
        const std::string id = run_id(run.status);
        table.columns.push_back({id, id, Column::Align::right, Column::Shrink::yes});
    }
    for (const Line& line : lines) {
        table.rows.push_back({Cell(line.name)});
        table.rows.back().insert(table.rows.back().end(), line.cells.begin(), line.cells.end());
    }
    return table;
}

/// A row for each run, a column for each of these lines.
Table with_runs_as_rows(const Comparison& comparison, const std::vector<Line>& lines)
{
    Table table;
    table.columns.push_back({"id", "ID", Column::Align::right});
    for (const Line& line : lines) {
        table.columns.push_back({line.name, line.name, Column::Align::right, Column::Shrink::yes});
    }
    for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
        table.rows.push_back({Cell(run_id(comparison.runs[i].status))});
        for (const Line& line : lines) {
            table.rows.back().push_back(line.cells[i]);
        }
    }
    return table;
}

std::vector<Table> tables_of(const Comparison& comparison, const std::string& title,
                             const std::vector<Line>& lines)
{
    if (lines.empty()) {
        return {};
    }
    if (comparison.runs.size() <= k_most_columns) {
        return {with_runs_as_columns(comparison, title, lines)};
    }
    std::vector<Table> tables;
    for (std::size_t begin = 0; begin < lines.size(); begin += k_most_columns) {
        const auto first = lines.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto count = std::min(k_most_columns, lines.size() - begin);
        tables.push_back(
            with_runs_as_rows(comparison, {first, first + static_cast<std::ptrdiff_t>(count)}));
    }
    return tables;
}

Cell cell_of(const SettingValue& value)
{
    switch (value.kind) {
    case SettingValue::Kind::given:
        return value.text.empty() ? "''" : value.text;
    case SettingValue::Kind::switched:
        return "yes";
    case SettingValue::Kind::hidden:
        return value.text;
    case SettingValue::Kind::absent:
        return {"-", Cell::Tone::dim};
    case SettingValue::Kind::unknown:
        break;
    }
    return {"?", Cell::Tone::dim};
}

std::string point_text(const Point& point)
{
    return fmt::format("{:.4g} at {}", point.value, point.step);
}

/// One value of the metric in every run.
Line line_of(const ComparedMetric& metric, std::string_view what, const auto& point_of)
{
    Line line{fmt::format("{} {}", metric.name, what), {}};
    for (const auto& run : metric.runs) {
        const std::optional<Point> point = run ? point_of(*run) : std::nullopt;
        line.cells.push_back(point ? Cell(point_text(*point)) : Cell("?", Cell::Tone::dim));
    }
    return line;
}

void add_lines(std::vector<Line>& lines, const ComparedMetric& metric)
{
    if (metric.better == Better::unknown) {
        lines.push_back(line_of(metric, "lowest", [](const auto& run) { return run.lowest; }));
        lines.push_back(line_of(metric, "highest", [](const auto& run) { return run.highest; }));
    } else {
        lines.push_back(
            line_of(metric, "best", [&](const auto& run) { return best_of(run, metric.better); }));
        if (metric.best_run) {
            lines.back().cells[*metric.best_run].tone = Cell::Tone::good;
        }
    }
    lines.push_back(
        line_of(metric, "last", [](const auto& run) { return std::optional(run.last); }));
}

std::string ids_of(const Comparison& comparison, const std::vector<std::size_t>& runs)
{
    std::vector<std::string> ids;
    std::transform(runs.begin(), runs.end(), std::back_inserter(ids),
                   [&](std::size_t run) { return run_id(comparison.runs[run].status); });
    return fmt::format("{}", fmt::join(ids, ", "));
}

// JSON.

std::string_view word(SettingValue::Kind kind)
{
    switch (kind) {
    case SettingValue::Kind::given:
        return "given";
    case SettingValue::Kind::switched:
        return "switched";
    case SettingValue::Kind::hidden:
        return "hidden";
    case SettingValue::Kind::absent:
        return "absent";
    case SettingValue::Kind::unknown:
        break;
    }
    return "unknown";
}

Json json_of(const Setting& setting)
{
    Json::Elements values;
    for (const SettingValue& value : setting.values) {
        const bool has_text =
            value.kind == SettingValue::Kind::given || value.kind == SettingValue::Kind::hidden;
        values.push_back(Json::object(
            {{"kind", word(value.kind)}, {"text", has_text ? Json(value.text) : Json()}}));
    }
    return Json::object({{"of", setting.of == Setting::Of::request ? "request" : "arguments"},
                         {"name", setting.name},
                         {"values", Json::array(std::move(values))}});
}

Json json_of(const std::optional<Point>& point)
{
    return point ? Json::object({{"step", point->step}, {"value", point->value}}) : Json();
}

Json json_of(const std::optional<MetricOfRun>& metric, Better better)
{
    if (!metric) {
        return {};
    }
    Json::Elements curve;
    for (const Point& point : metric->curve) {
        curve.push_back(Json::array({Json(point.step), Json(point.value)}));
    }
    return Json::object({{"tag", metric->tag},
                         {"points", metric->points},
                         {"best", json_of(best_of(*metric, better))},
                         {"lowest", json_of(metric->lowest)},
                         {"highest", json_of(metric->highest)},
                         {"last", json_of(std::optional(metric->last))},
                         {"curve", Json::array(std::move(curve))}});
}

Json json_of(const ComparedMetric& metric)
{
    Json::Elements series;
    for (const auto& run : metric.runs) {
        series.push_back(json_of(run, metric.better));
    }
    const Json better = metric.better == Better::unknown ? Json()
                        : metric.better == Better::lower ? Json("lower")
                                                         : Json("higher");
    return Json::object({{"name", metric.name},
                         {"main_loss", metric.is_main_loss},
                         {"better", better},
                         {"best_run", metric.best_run},
                         {"series", Json::array(std::move(series))}});
}

Json json_of(const std::vector<std::size_t>& indices)
{
    return Json::array(Json::Elements(indices.begin(), indices.end()));
}

} // namespace

Table compared_runs_table(const Comparison& comparison, Time now)
{
    std::vector<RunStatus> statuses;
    std::transform(comparison.runs.begin(), comparison.runs.end(), std::back_inserter(statuses),
                   [](const ComparedRun& run) { return run.status; });
    Table table = *report::only(run_table(statuses, now), "id,name,state,exit");
    table.columns.push_back({"time", "TIME", Column::Align::right});
    table.columns.push_back({"gpu_hours", "GPU-HOURS", Column::Align::right});
    for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
        const ComparedRun& run = comparison.runs[i];
        const bool waits =
            run.status.state == RunState::waiting || run.status.state == RunState::submitting;
        const std::string none = waits ? "-" : "?";
        table.rows[i].emplace_back(run.duration ? describe(*run.duration) : none);
        table.rows[i].emplace_back(run.gpu_hours ? fmt::format("{:.2f}", *run.gpu_hours) : none);
    }
    return table;
}

std::vector<Table> settings_tables(const Comparison& comparison)
{
    std::vector<Line> lines;
    for (const Setting& setting : comparison.settings) {
        Line line{setting.name, {}};
        std::transform(setting.values.begin(), setting.values.end(), std::back_inserter(line.cells),
                       cell_of);
        lines.push_back(std::move(line));
    }
    return tables_of(comparison, "SETTING", lines);
}

std::vector<Table> metrics_tables(const Comparison& comparison)
{
    std::vector<Line> lines;
    for (const ComparedMetric& metric : comparison.metrics) {
        add_lines(lines, metric);
    }
    return tables_of(comparison, "METRIC", lines);
}

std::string best_text(const Comparison& comparison, const ComparedMetric& metric)
{
    if (!metric.best_run) {
        return "";
    }
    const auto best = best_of(*metric.runs[*metric.best_run], metric.better);
    return fmt::format("best {}: {:.4g} at step {} in run {}", metric.name, best->value, best->step,
                       run_title(comparison.runs[*metric.best_run].status));
}

std::vector<std::string> comparison_notes(const Comparison& comparison)
{
    std::vector<std::string> notes;
    std::vector<std::size_t> without, unread;
    for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
        if (!comparison.runs[i].has_metrics) {
            without.push_back(i);
        }
        if (!comparison.runs[i].status.run) {
            unread.push_back(i);
        }
    }
    if (!unread.empty()) {
        notes.push_back("request unknown, its record can't be read: " + ids_of(comparison, unread));
    }
    if (comparison.settings.empty()) {
        notes.emplace_back("no setting differs");
    }
    if (!without.empty()) {
        notes.push_back("no metrics found: " + ids_of(comparison, without));
    }
    if (comparison.metrics_not_common > 0) {
        notes.push_back(fmt::format("{} that not all of these runs have",
                                    counted(comparison.metrics_not_common, "metric")));
    }
    if (comparison.metrics_left_out > 0) {
        notes.push_back(
            fmt::format("{} left out", counted(comparison.metrics_left_out, "common metric")));
    }
    for (const auto& group : comparison.same_file) {
        notes.push_back(fmt::format("runs {} wrote the same file, {}: the metrics may be of any of "
                                    "them; start each in its own directory",
                                    ids_of(comparison, group),
                                    comparison.runs[group.front()].source));
    }
    return notes;
}

Json settings_json(const Comparison& comparison)
{
    Json::Elements settings;
    for (const Setting& setting : comparison.settings) {
        settings.push_back(json_of(setting));
    }
    return Json::array(std::move(settings));
}

Json::Members comparison_document(const WholeComparison& whole, Time now)
{
    const Comparison& comparison = whole.comparison;
    Json::Elements runs, metrics, same_file, warnings;
    for (const ComparedRun& run : comparison.runs) {
        const bool from_file = !run.source.empty();
        runs.push_back(Json::object({{"run", run_json(run.status, now)},
                                     {"gpu_hours", run.gpu_hours},
                                     {"has_metrics", run.has_metrics},
                                     {"source", from_file ? Json(run.source) : Json()}}));
    }
    for (const ComparedMetric& metric : comparison.metrics) {
        metrics.push_back(json_of(metric));
    }
    for (const auto& group : comparison.same_file) {
        same_file.push_back(json_of(group));
    }
    for (const std::string& text : whole.warnings) {
        warnings.push_back(Json::object({{"code", "slurm_unreachable"}, {"text", text}}));
    }
    return {{"runs", Json::array(std::move(runs))},
            {"settings", settings_json(comparison)},
            {"metrics", Json::array(std::move(metrics))},
            {"metrics_left_out", comparison.metrics_left_out},
            {"metrics_not_common", comparison.metrics_not_common},
            {"same_file", Json::array(std::move(same_file))},
            {"warnings", Json::array(std::move(warnings))}};
}

} // namespace gpuq::cli
