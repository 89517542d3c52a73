// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/trace_lines.h"

#include "core/nearest.h"
#include "core/strings.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

namespace gpuq::sim {
namespace {

constexpr std::size_t k_longest_name = 40; ///< when quoted

/// A column that a header may have. Columns with the same meaning under different names have the
/// same `aspect`; a column with an empty one is known, because sites' traces have it, but ignored.
struct Column {
    std::string_view name;
    std::string_view aspect;
};
constexpr std::array k_columns{
    Column{"job_id", "job_id"},
    Column{"submit_s", "submit_s"},
    Column{"submit_ms", "submit_ms"},
    Column{"start_s", "start_s"},
    Column{"duration_s", "duration_s"},
    Column{"duration_ms", "duration_ms"},
    Column{"limit_s", "limit_s"},
    Column{"gpus", "gpus"},
    Column{"shares", "shares"},
    Column{"nodes", "nodes"},
    Column{"min_nodes", "min_nodes"},
    Column{"model", "model"},
    Column{"user", "user"},
    Column{"account", "account"},
    Column{"partition", "partition"},
    Column{"partition_or_vc", "partition"},
    Column{"state", "state"},
    Column{"name", ""},
    Column{"queue", ""},
    Column{"qos", "qos"},
    Column{"cpus", "cpus"},
    Column{"memory", ""},
    Column{"memory_mib", "memory_mib"},
    Column{"features", "features"},
    Column{"end_s", ""},
    Column{"wait_s", ""},
    Column{"exit_code", ""},
    Column{"comment", ""},
};

Error unknown_column(const Line& line, std::size_t place, std::string_view name)
{
    std::vector<std::string> known;
    for (const Column& column : k_columns) {
        known.emplace_back(column.name);
    }
    const std::string shown = sanitised(name.substr(0, k_longest_name));
    return line.wrong_at(place, fmt::format("unknown column '{}'{}; there are: {}", shown,
                                            did_you_mean(shown, known), fmt::join(known, ", ")));
}

/// All names must be known, and must not be repeated. An unknown column would be silently ignored.
Result<void> check_names(const Line& line, std::string_view column_names, const Fields& header)
{
    std::map<std::string_view, std::size_t> places; ///< by aspect
    for (std::size_t i = 0; i < header.size(); ++i) {
        const std::string_view name = trimmed(header[i]);
        if (name.empty()) {
            return line.wrong(fmt::format("column {} of the header has no name", i + 1));
        }
        const auto place = static_cast<std::size_t>(name.data() - column_names.data()) + 1;
        const auto column = std::find_if(k_columns.begin(), k_columns.end(),
                                         [&](const Column& one) { return one.name == name; });
        if (column == k_columns.end()) {
            return unknown_column(line, place, name);
        }
        const auto aspect = column->aspect.empty() ? column->name : column->aspect;
        const auto [first, is_new] = places.emplace(aspect, place);
        if (!is_new) {
            return line.wrong_at(
                place, fmt::format("column '{}' duplicates the one at {}", name, first->second));
        }
    }
    return {};
}

Result<void> check_header(const Line& line, std::string_view column_names, const Fields& header)
{
    TRY(check_names(line, column_names, header));
    const Columns columns(header);
    for (const char* name : {"submit_s", "duration_s", "gpus"}) {
        if (!columns.has(name)) {
            return line.wrong(fmt::format("the header has no column {}; it needs at least "
                                          "submit_s, duration_s and gpus",
                                          name));
        }
    }
    return {};
}

/// Reads the values that are only needed for simulations that include jobs without GPUs.
Result<void> add_needs(const Line& line, const Columns& columns, const Fields& row, TraceJob& job)
{
    if (!columns.in(row, "min_nodes").empty()) {
        TRY_ASSIGN(job.min_nodes, line.count(columns.in(row, "min_nodes"), "min_nodes"));
    }
    if (!columns.in(row, "cpus").empty()) {
        TRY_ASSIGN(job.cpus, line.count(columns.in(row, "cpus"), "cpus"));
    }
    if (!columns.in(row, "memory_mib").empty()) {
        TRY_ASSIGN(job.memory_mib, line.count(columns.in(row, "memory_mib"), "memory_mib"));
    }
    if (!columns.in(row, "submit_ms").empty()) {
        TRY_ASSIGN(job.submit_ms, line.count(columns.in(row, "submit_ms"), "submit_ms"));
    }
    if (!columns.in(row, "duration_ms").empty()) {
        TRY_ASSIGN(job.duration_ms, line.count(columns.in(row, "duration_ms"), "duration_ms"));
    }
    job.features = columns.in(row, "features");
    job.qos = columns.in(row, "qos");
    return {};
}

Result<TraceJob> job_in(const Line& line, const Columns& columns, const Fields& row, Which which)
{
    TraceJob job;
    job.id = columns.in(row, "job_id");
    TRY_ASSIGN(const auto submit, line.seconds(columns.in(row, "submit_s"), "submit_s"));
    TRY_ASSIGN(const auto duration, line.seconds(columns.in(row, "duration_s"), "duration_s"));
    if (!submit || !duration) {
        return line.wrong("submit_s and duration_s are required and can't be negative");
    }
    job.submit = *submit;
    job.duration = *duration;
    TRY_ASSIGN(job.limit, line.seconds(columns.in(row, "limit_s"), "limit_s"));
    TRY_ASSIGN(job.start, line.seconds(columns.in(row, "start_s"), "start_s"));
    TRY_ASSIGN(job.gpus, line.count(columns.in(row, "gpus"), "gpus"));
    if (!columns.in(row, "nodes").empty()) {
        TRY_ASSIGN(job.nodes, line.count(columns.in(row, "nodes"), "nodes"));
    }
    if (!columns.in(row, "shares").empty()) {
        TRY_ASSIGN(job.shares, line.count(columns.in(row, "shares"), "shares"));
    }
    if (job.shares > 0 && (job.gpus > 0 || job.nodes > 1)) {
        return line.wrong("shares are of one GPU: gpus must be 0, and nodes 0 or 1");
    }
    job.model = columns.in(row, "model");
    job.user = columns.in(row, "user");
    job.account = columns.in(row, "account");
    job.partition =
        columns.in(row, columns.has("partition_or_vc") ? "partition_or_vc" : "partition");
    job.state = columns.in(row, "state");
    if (which == Which::all) {
        TRY(add_needs(line, columns, row, job));
    }
    return job;
}

} // namespace

Result<Trace> parse_csv(std::string_view text, const std::string& name, Which which)
{
    Trace trace;
    std::optional<Columns> columns;
    TRY(each_line(text, name, [&](const Line& line, std::string_view column_names) -> Result<void> {
        const Fields row = split(column_names, ',');
        if (!columns) {
            columns.emplace(row);
            return check_header(line, column_names, row);
        }
        if (row.size() != columns->size()) {
            return line.wrong(
                fmt::format("{} fields; the header has {}", row.size(), columns->size()));
        }
        TRY_ASSIGN(TraceJob job, job_in(line, *columns, row, which));
        if (trace.jobs.size() >= k_most_trace_jobs) {
            return line.wrong(fmt::format("more than {} jobs", k_most_trace_jobs));
        }
        if (job.gpus == 0 && job.shares == 0 && which == Which::with_gpus) {
            ++trace.without_gpus;
        } else {
            trace.jobs.push_back(std::move(job));
        }
        return {};
    }));
    finish(trace);
    return trace;
}

} // namespace gpuq::sim
