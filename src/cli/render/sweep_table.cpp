// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/sweep_table.h"

#include "core/number.h"
#include "core/quote.h"
#include "core/walltime.h"
#include "report/csv.h"
#include "report/ending_text.h"
#include "runs/find.h"
#include "sweeps/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpuq::cli {
namespace {

using report::Cell;
using report::Column;
using report::Json;
using std::chrono::seconds;
using sweeps::Try;
using sweeps::TryEnd;

bool has_succeeded(const Try& entry)
{
    return entry.end->end == TryEnd::finished && entry.end->status == 0;
}

template <typename Number>
std::string or_dash(const std::optional<Number>& value)
{
    if constexpr (std::is_floating_point_v<Number>) {
        return value ? fmt::format("{:.5g}", *value) : "-";
    } else {
        return value ? fmt::format("{}", *value) : "-";
    }
}

/// The time of all attempts.
std::optional<seconds> time_of(const Try& entry, Time now)
{
    auto used = entry.used;
    if (entry.state == Try::State::running && entry.began_at && *entry.began_at < now) {
        used += now - *entry.began_at;
    }
    return entry.attempt == 0 ? std::nullopt : std::optional(std::chrono::floor<seconds>(used));
}

std::vector<Cell> row_of(const SweepStatus& status, std::size_t index, Time now)
{
    const Try& entry = status.tries[index];
    std::vector<Cell> row{std::to_string(index + 1), state_cell(entry)};
    for (const std::string& value : entry.values) {
        row.emplace_back(value);
    }
    row.resize(2 + status.sweep.parameters.size(), Cell("-"));
    const auto time = time_of(entry, now);
    row.emplace_back(or_dash(entry.reached.best));
    row.emplace_back(or_dash(entry.reached.last));
    row.emplace_back(or_dash(entry.reached.best_step));
    row.emplace_back(time ? describe(*time) : "-");
    row.emplace_back(entry.state == Try::State::ended ? std::to_string(entry.end->status) : "-");
    return row;
}

std::vector<Column> columns_of_tries(const SweepStatus& status)
{
    std::vector<Column> columns{{"try", "TRY", Column::Align::right}, {"state", "STATE"}};
    for (const std::string& name : status.sweep.parameters) {
        columns.push_back({.name = name,
                           .title = name,
                           .shrink = Column::Shrink::yes,
                           .cut = Column::Cut::middle});
    }
    columns.push_back({"best", "BEST", Column::Align::right});
    columns.push_back({"last", "LAST", Column::Align::right, Column::Shrink::no, 2});
    columns.push_back({"step", "STEP", Column::Align::right, Column::Shrink::no, 3});
    columns.push_back({"time", "TIME", Column::Align::right, Column::Shrink::no, 1});
    columns.push_back({"exit", "EXIT", Column::Align::right});
    return columns;
}

/// Indices of all tries, in the order of tries_table().
std::vector<std::size_t> ordered(const SweepStatus& status)
{
    std::vector<std::size_t> order = sweeps::ranking(status.tries, status.sweep.metric);
    std::vector<bool> listed(status.tries.size(), false);
    for (const std::size_t index : order) {
        listed[index] = true;
    }
    for (const auto state : {Try::State::running, Try::State::waiting, Try::State::ended}) {
        for (std::size_t i = 0; i < status.tries.size(); ++i) {
            if (!listed[i] && status.tries[i].state == state) {
                order.push_back(i);
            }
        }
    }
    return order;
}

double hours(std::chrono::microseconds time)
{
    return std::chrono::duration<double, std::ratio<3600>>(time).count();
}

std::optional<std::size_t> best_of(const SweepStatus& status)
{
    const auto order = sweeps::ranking(status.tries, status.sweep.metric);
    return order.empty() ? std::nullopt : std::optional(order.front());
}

std::size_t left(const sweeps::Tally& tally)
{
    return tally.waiting + tally.running;
}

Cell::Tone tone_of(SweepStatus::State state)
{
    switch (state) {
    case SweepStatus::State::running:
        return Cell::Tone::good;
    case SweepStatus::State::waiting:
        return Cell::Tone::warning;
    case SweepStatus::State::stalled:
        return Cell::Tone::bad;
    case SweepStatus::State::stopped:
    case SweepStatus::State::spent:
    case SweepStatus::State::ended:
        return Cell::Tone::dim;
    }
    return Cell::Tone::plain;
}

Json proposals_json(const SweepLine& line)
{
    const auto& propose = line.sweep.propose;
    if (!propose) {
        return {};
    }
    return Json::object({{"command", Json::array(propose->command)},
                         {"most", propose->most},
                         {"open", line.totals.is_open},
                         {"failure", line.totals.failure.empty() ? Json() : line.totals.failure}});
}

Json::Members members_of(const SweepLine& line)
{
    const auto& [sweep, state, totals, workers] = line;
    const sweeps::Tally& tally = totals.tally;
    return {{"key", sweep.run.key.text()},
            {"name", sweep.name},
            {"state", word(state)},
            {"parameters", Json::array(sweep.parameters)},
            {"metric", to_text(sweep.metric)},
            {"stop_early", sweep.stop_early ? Json(to_text(*sweep.stop_early)) : Json()},
            {"seed", sweep.seed
                         ? Json(fmt::format("{}", *sweep.seed)) // 64 bits: too large for JSON
                         : Json()},
            {"begun", sweep.run.submitted_at},
            {"gpu_hours", hours(totals.gpu_time)},
            {"gpu_hours_limit", sweep.gpu_time ? Json(hours(*sweep.gpu_time)) : Json()},
            {"proposals", proposals_json(line)},
            {"succeeded", tally.succeeded},
            {"failed", tally.failed},
            {"stopped", tally.stopped},
            {"stopped_early", tally.stopped_early},
            {"running", tally.running},
            {"waiting", tally.waiting},
            {"workers", workers},
            {"best_try", totals.best ? Json(totals.best->number) : Json()}};
}

Json evidence_json(const Try& entry)
{
    if (entry.state != Try::State::ended || !entry.end->evidence) {
        return {};
    }
    const sweeps::EarlyStop& evidence = *entry.end->evidence;
    return Json::object({{"rung", evidence.rung},
                         {"step", evidence.step},
                         {"value", evidence.value},
                         {"threshold", evidence.threshold},
                         {"compared", evidence.compared}});
}

Json json_of(const SweepStatus& status, std::size_t index)
{
    const Try& entry = status.tries[index];
    Json::Members values;
    for (std::size_t i = 0; i < status.sweep.parameters.size() && i < entry.values.size(); ++i) {
        values.emplace_back(status.sweep.parameters[i], entry.values[i]);
    }
    const bool has_ended = entry.state == Try::State::ended;
    constexpr std::array<std::string_view, 3> k_states = {"waiting", "running", "ended"};
    return Json::object({{"try", index + 1},
                         {"state", k_states.at(static_cast<std::size_t>(entry.state))},
                         {"values", Json::object(std::move(values))},
                         {"attempts", entry.attempt},
                         {"began", entry.began_at},
                         {"ended", has_ended ? Json(entry.end->at) : Json()},
                         {"end", has_ended ? Json(sweeps::word(entry.end->end)) : Json()},
                         {"status", has_ended ? Json(entry.end->status) : Json()},
                         {"stopped_early", evidence_json(entry)},
                         {"best", entry.reached.best},
                         {"best_step", entry.reached.best_step},
                         {"last", entry.reached.last},
                         {"seconds", std::chrono::duration<double>(entry.used).count()}});
}

} // namespace

std::string_view word(SweepStatus::State state)
{
    constexpr std::array<std::string_view, 6> k_names = {"waiting", "running", "stalled",
                                                         "stopped", "spent",   "ended"};
    static_assert(k_names.size() == static_cast<std::size_t>(SweepStatus::State::ended) + 1);
    return k_names.at(static_cast<std::size_t>(state));
}

SweepLine line_of(const SweepStatus& status, Time now)
{
    SweepLine line{status.sweep, status.state, sweeps::totals_of(status.tries, status.sweep, now),
                   status.workers.size()};
    line.totals.is_open = status.is_open;
    line.totals.failure = status.proposal_failure;
    return line;
}

report::Table sweeps_table(const std::vector<SweepLine>& sweeps)
{
    report::Table table{{{.name = "id",
                          .title = "SWEEP",
                          .shrink = Column::Shrink::first,
                          .cut = Column::Cut::middle},
                         {"state", "STATE"},
                         {"tries", "TRIES", Column::Align::right},
                         {"done", "DONE", Column::Align::right},
                         {"failed", "FAILED", Column::Align::right},
                         {"left", "LEFT", Column::Align::right},
                         {"workers", "WORKERS", Column::Align::right},
                         {"best", "BEST", Column::Align::left, Column::Shrink::yes, 1}},
                        {}};
    for (const auto& [sweep, state, totals, workers] : sweeps) {
        const std::size_t failed = totals.tally.failed + totals.tally.stopped;
        table.rows.push_back(
            {sweep.name,
             {std::string(word(state)), tone_of(state)},
             std::to_string(totals.tries),
             std::to_string(totals.tally.succeeded),
             {std::to_string(failed), failed > 0 ? Cell::Tone::bad : Cell::Tone::plain},
             std::to_string(left(totals.tally)),
             std::to_string(workers),
             totals.best ? fmt::format("{} {:.5g} (try {})", name_of(sweep.metric),
                                       totals.best->value, totals.best->number)
                         : "-"});
    }
    return table;
}

report::Cell state_cell(const Try& entry)
{
    using Tone = Cell::Tone;
    if (entry.state == Try::State::running) {
        return {"running", Tone::good};
    }
    if (entry.state == Try::State::waiting) {
        return {entry.attempt > 0 ? "to continue" : "waiting", Tone::dim};
    }
    switch (entry.end->end) {
    case TryEnd::finished:
        return has_succeeded(entry) ? Cell("done", Tone::good) : Cell("failed", Tone::bad);
    case TryEnd::crashed:
        return {"crashed", Tone::bad};
    case TryEnd::stopped:
        return {"stopped", Tone::dim};
    case TryEnd::paused:
        return {"paused", Tone::dim};
    case TryEnd::not_started:
        return {"not started", Tone::bad};
    case TryEnd::lost:
        return {"lost", Tone::bad};
    case TryEnd::stopped_early:
        return {"stopped early", Tone::dim};
    }
    return {"ended", Tone::dim};
}

report::Table compared_tries_table(const SweepStatus& status,
                                   const std::vector<std::size_t>& numbers, Time now)
{
    report::Table table{columns_of_tries(status), {}};
    for (const std::size_t number : numbers) {
        if (number > 0 && number <= status.tries.size()) {
            table.rows.push_back(row_of(status, number - 1, now));
        }
    }
    std::size_t column = 2; // behind the number and the state
    for (std::size_t i = 0; i < status.sweep.parameters.size() && table.rows.size() > 1; ++i) {
        const auto at = static_cast<std::ptrdiff_t>(column);
        const bool differs =
            std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
                return row[column].text != table.rows.front()[column].text;
            });
        if (differs) {
            ++column;
            continue;
        }
        table.columns.erase(table.columns.begin() + at);
        for (auto& row : table.rows) {
            row.erase(row.begin() + at);
        }
    }
    return table;
}

report::Table tries_table(const SweepStatus& status, std::size_t most, Time now)
{
    report::Table table{columns_of_tries(status), {}};
    for (const std::size_t index : ordered(status)) {
        if (table.rows.size() == most) {
            break;
        }
        table.rows.push_back(row_of(status, index, now));
    }
    return table;
}

std::string sweep_summary(const SweepStatus& status)
{
    const auto& tally = status.tally;
    std::string text =
        fmt::format("{} of {} done", tally.succeeded, counted(status.tries.size(), "try"));
    if (status.tries.size() != 1) {
        text = fmt::format("{} of {} tries done", tally.succeeded, status.tries.size());
    }
    const auto add = [&](std::size_t count, std::string_view what) {
        text += count == 0 ? "" : fmt::format(", {} {}", count, what);
    };
    add(tally.failed, "failed");
    add(tally.stopped_early, "stopped early");
    add(tally.stopped, "stopped");
    add(tally.running, "running");
    add(tally.waiting, "left");
    if (const auto best = best_of(status)) {
        const Try& entry = status.tries[*best];
        text += fmt::format("; best {} {:.5g} (try {}: {})", name_of(status.sweep.metric),
                            *entry.reached.best, *best + 1,
                            sweeps::values_text(status.sweep.parameters, entry.values));
    }
    return text;
}

std::string missing_metric_text(const SweepStatus& status)
{
    const auto has_value = [](const Try& entry) {
        return entry.reached.best.has_value() || entry.reached.last.has_value();
    };
    const auto& tries = status.tries;
    const auto ended = std::find_if(tries.begin(), tries.end(), [](const Try& entry) {
        return entry.state == Try::State::ended && has_succeeded(entry);
    });
    if (status.sweep.metric.tag.empty() || ended == tries.end() ||
        std::any_of(tries.begin(), tries.end(), has_value)) {
        return "";
    }
    return fmt::format("no try has printed the metric {}: see gpuq logs {}/{}",
                       status.sweep.metric.tag, shell_quoted(status.sweep.name),
                       ended - tries.begin() + 1);
}

std::string evidence_text(const sweeps::EarlyStop& evidence, const sweeps::Sweep& sweep)
{
    return fmt::format("{} {:.6g} at step {} (rung {} of {}): limit {:.6g}, {} others",
                       name_of(sweep.metric), evidence.value, evidence.step, evidence.rung,
                       sweep.stop_early ? to_text(*sweep.stop_early) : "?", evidence.threshold,
                       evidence.compared);
}

void add_sweeps(report::Json::Members& document, const std::vector<SweepLine>& sweeps)
{
    Json::Elements list;
    for (const SweepLine& line : sweeps) {
        list.push_back(Json::object(members_of(line)));
    }
    document.emplace_back("sweeps", Json::array(std::move(list)));
}

report::Json::Members sweep_document(const SweepStatus& status, std::optional<std::size_t> number,
                                     const std::optional<CodeFacts>& code, Time now)
{
    Json::Members members = members_of(line_of(status, now));
    Json::Elements tries;
    for (std::size_t i = 0; i < status.tries.size(); ++i) {
        tries.push_back(json_of(status, i));
    }
    members.emplace_back("tries", Json::array(std::move(tries)));
    return {
        {"sweep", Json::object(std::move(members))}, {"try", number}, {"code", code_json(code)}};
}

std::string sweep_csv(const SweepStatus& status)
{
    std::string text;
    const auto add_line = [&](const std::vector<std::string>& fields) {
        for (std::size_t i = 0; i < fields.size(); ++i) {
            text += (i == 0 ? "" : ",") + report::csv_field(fields[i]);
        }
        text += "\n";
    };
    // A parameter has its own name as column: a result of that name gets another one.
    const auto& parameters = status.sweep.parameters;
    std::vector<std::string> header;
    const auto add_result = [&](std::string name) {
        while (std::find(parameters.begin(), parameters.end(), name) != parameters.end()) {
            name.insert(0, "gpuq_");
        }
        header.push_back(std::move(name));
    };
    add_result("try");
    header.insert(header.end(), parameters.begin(), parameters.end());
    for (const char* name : {"end", "status", "best", "best_step", "last", "seconds"}) {
        add_result(name);
    }
    if (status.sweep.stop_early) {
        for (const char* name : {"stop_step", "stop_value", "stop_threshold", "stop_compared"}) {
            add_result(name);
        }
    }
    add_line(header);
    for (std::size_t i = 0; i < status.tries.size(); ++i) {
        const Try& entry = status.tries[i];
        std::vector<std::string> fields{std::to_string(i + 1)};
        fields.insert(fields.end(), entry.values.begin(), entry.values.end());
        fields.resize(1 + parameters.size());
        const bool has_ended = entry.state == Try::State::ended;
        const auto number = [](const auto& value) {
            return value ? fmt::format("{}", *value) : std::string();
        };
        fields.emplace_back(has_ended ? sweeps::word(entry.end->end) : "");
        fields.push_back(has_ended ? std::to_string(entry.end->status) : "");
        fields.push_back(number(entry.reached.best));
        fields.push_back(number(entry.reached.best_step));
        fields.push_back(number(entry.reached.last));
        fields.push_back(fmt::format("{:.3f}", std::chrono::duration<double>(entry.used).count()));
        if (has_ended && entry.end->evidence) {
            const sweeps::EarlyStop& evidence = *entry.end->evidence;
            fields.insert(fields.end(),
                          {std::to_string(evidence.step), fmt::format("{}", evidence.value),
                           fmt::format("{}", evidence.threshold),
                           std::to_string(evidence.compared)});
        }
        fields.resize(header.size());
        add_line(fields);
    }
    return text;
}

} // namespace gpuq::cli
