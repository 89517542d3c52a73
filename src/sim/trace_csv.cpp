// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/trace_lines.h"

#include <fmt/format.h>

namespace gpuq::sim {
namespace {

Result<void> check_header(const Line& line, const Columns& columns)
{
    for (const char* name : {"submit_s", "duration_s", "gpus"}) {
        if (!columns.has(name)) {
            return line.wrong(fmt::format("the header has no column {}; it needs at least "
                                          "submit_s, duration_s and gpus",
                                          name));
        }
    }
    return {};
}

Result<TraceJob> job_in(const Line& line, const Columns& columns, const Fields& row)
{
    TraceJob job;
    job.id = columns.in(row, "job_id");
    TRY_ASSIGN(const auto submit, line.seconds(columns.in(row, "submit_s"), "submit_s"));
    TRY_ASSIGN(const auto duration, line.seconds(columns.in(row, "duration_s"), "duration_s"));
    if (!submit || !duration) {
        return line.wrong("submit_s and duration_s must be there, and not negative");
    }
    job.submit = *submit;
    job.duration = *duration;
    TRY_ASSIGN(job.limit, line.seconds(columns.in(row, "limit_s"), "limit_s"));
    TRY_ASSIGN(job.start, line.seconds(columns.in(row, "start_s"), "start_s"));
    TRY_ASSIGN(job.gpus, line.count(columns.in(row, "gpus"), "gpus"));
    if (!columns.in(row, "nodes").empty()) {
        TRY_ASSIGN(job.nodes, line.count(columns.in(row, "nodes"), "nodes"));
    }
    job.model = columns.in(row, "model");
    job.user = columns.in(row, "user");
    job.account = columns.in(row, "account");
    job.partition =
        columns.in(row, columns.has("partition_or_vc") ? "partition_or_vc" : "partition");
    job.state = columns.in(row, "state");
    return job;
}

} // namespace

Result<Trace> parse_csv(std::string_view text, const std::string& name)
{
    Trace trace;
    std::optional<Columns> columns;
    TRY(each_line(text, name, [&](const Line& line, std::string_view words) -> Result<void> {
        const Fields row = split(words, ',');
        if (!columns) {
            columns.emplace(row);
            return check_header(line, *columns);
        }
        if (row.size() != columns->size()) {
            return line.wrong(
                fmt::format("{} fields; the header has {}", row.size(), columns->size()));
        }
        TRY_ASSIGN(TraceJob job, job_in(line, *columns, row));
        if (trace.jobs.size() >= k_most_trace_jobs) {
            return line.wrong(fmt::format("more than {} jobs", k_most_trace_jobs));
        }
        if (job.gpus == 0) {
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
