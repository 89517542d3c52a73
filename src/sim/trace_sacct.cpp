// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/trace_lines.h"

#include "core/number.h"
#include "core/timestamp.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::sim {
namespace {

/// `1-12:30:00`, `12:30:00`, `30:00.123`; nullopt for text such as UNLIMITED.
Result<std::optional<Seconds>> length(const Line& line, std::string_view text)
{
    if (text.empty() || text.find_first_of("0123456789") != 0) {
        return std::optional<Seconds>{};
    }
    std::string_view rest = text.substr(0, text.find('.'));
    std::uint64_t days = 0;
    if (const auto dash = rest.find('-'); dash != std::string_view::npos) {
        days = whole_number(rest.substr(0, dash)).value_or(1'000'000);
        rest.remove_prefix(dash + 1);
    }
    std::uint64_t seconds = 0;
    bool good = days < 1'000'000;
    for (const std::string_view part : split(rest, ':')) {
        const auto number = whole_number(part);
        good = good && number && *number < 100'000;
        seconds = seconds * 60 + number.value_or(0) % 100'000;
    }
    if (!good || seconds > std::uint64_t{100'000} * 3600) {
        return line.wrong(
            fmt::format("'{}' is not a duration in sacct's format", text.substr(0, 30)));
    }
    return std::optional(Seconds{static_cast<std::int64_t>(days * 86400 + seconds)});
}

/// The columns without which a job can't be described.
Result<void> check_header(const Line& line, const Columns& columns)
{
    const bool gpus = columns.has("ReqTRES") || columns.has("AllocTRES");
    const bool times = columns.has("Elapsed") || columns.has("End");
    return columns.has("JobID") && columns.has("Submit") && columns.has("Start") && gpus && times
               ? Result<void>()
               : line.wrong("the header needs at least JobID, Submit, Start, one of Elapsed and "
                            "End, and one of AllocTRES and ReqTRES, which contain the GPUs");
}

Result<TraceJob> job_in(const Line& line, const Columns& columns, const Fields& row)
{
    TraceJob job;
    job.id = columns.in(row, "JobID");
    TRY_ASSIGN(const auto submit, sacct_moment(line, columns.in(row, "Submit")));
    TRY_ASSIGN(const auto eligible, sacct_moment(line, columns.in(row, "Eligible")));
    TRY_ASSIGN(job.start, sacct_moment(line, columns.in(row, "Start")));
    TRY_ASSIGN(const auto end, sacct_moment(line, columns.in(row, "End")));
    TRY_ASSIGN(const auto elapsed, length(line, columns.in(row, "Elapsed")));
    TRY_ASSIGN(job.limit, length(line, columns.in(row, "Timelimit")));
    if (!submit) {
        return line.wrong("no submit time");
    }
    // A wait counts from the time when the job could have started.
    job.submit = std::max(*submit, eligible.value_or(*submit));
    job.duration = elapsed            ? *elapsed
                   : job.start && end ? std::max(Seconds{0}, *end - *job.start)
                                      : Seconds{0};
    // A job cancelled while it was pending has a start time, too, but never had resources.
    if (columns.has("AllocTRES") && columns.in(row, "AllocTRES").empty()) {
        job.start.reset();
    }
    job.gpus = 0;
    read_sacct_tres(columns.in(row, "ReqTRES"), job);
    const std::string requested = job.model;
    read_sacct_tres(columns.in(row, "AllocTRES"), job);
    job.model = requested;
    job.user = columns.in(row, "User");
    job.account = columns.in(row, "Account");
    job.partition = columns.in(row, "Partition");
    job.state = columns.in(row, "State");
    return job;
}

} // namespace

Result<std::optional<Seconds>> sacct_moment(const Line& line, std::string_view text)
{
    if (text.empty() || text == "Unknown" || text == "None" || text == "N/A") {
        return std::optional<Seconds>{};
    }
    const auto time = time_from_iso8601(std::string(text) + "Z");
    if (!time) {
        return line.wrong(fmt::format("'{}' is not a time in sacct's format", text.substr(0, 30)));
    }
    return std::optional(std::chrono::duration_cast<Seconds>(time->time_since_epoch()));
}

void read_sacct_tres(std::string_view text, TraceJob& job)
{
    for (const std::string_view part : split(text, ',')) {
        const auto equals = std::min(part.find('='), part.size());
        const std::string_view name = part.substr(0, equals);
        const std::string_view value = part.substr(std::min(equals + 1, part.size()));
        const auto number = whole_number(value);
        if (!number || *number > 1'000'000) {
            continue;
        }
        if (name == "gres/gpu" || name.substr(0, 9) == "gres/gpu:") {
            job.gpus = std::max(job.gpus, static_cast<int>(*number));
            job.model = name.size() > 9 ? std::string(name.substr(9)) : job.model;
        } else if (name == "gres/shard" || name.substr(0, 11) == "gres/shard:") {
            job.shares = std::max(job.shares, static_cast<int>(*number));
        } else if (name == "node") {
            job.nodes = static_cast<int>(*number);
        }
    }
}

Result<Trace> parse_sacct(std::string_view text, const std::string& name)
{
    Trace trace;
    std::optional<Columns> columns;
    TRY(each_line(text, name, [&](const Line& line, std::string_view column_names) -> Result<void> {
        const Fields row = split(column_names, '|');
        if (!columns) {
            columns.emplace(row);
            return check_header(line, *columns);
        }
        if (columns->in(row, "JobID").find('.') != std::string_view::npos) {
            return {}; // a step of the previous job
        }
        if (row.size() != columns->size()) {
            return line.wrong(
                fmt::format("{} fields; the header has {}", row.size(), columns->size()));
        }
        TRY_ASSIGN(TraceJob job, job_in(line, *columns, row));
        if (trace.jobs.size() >= k_most_trace_jobs) {
            return line.wrong(fmt::format("more than {} jobs", k_most_trace_jobs));
        }
        const bool has_mps = columns->in(row, "ReqTRES").find("gres/mps") != std::string_view::npos;
        if (job.gpus == 0 && (has_mps || (job.shares > 0 && job.nodes > 1))) {
            ++trace.other_shares;
        } else if (job.gpus == 0 && job.shares == 0) {
            ++trace.without_gpus;
        } else if (!job.start) {
            ++trace.never_started;
        } else {
            job.shares = job.gpus > 0 ? 0 : job.shares;
            trace.jobs.push_back(std::move(job));
        }
        return {};
    }));
    trace.clock = TraceClock::on_the_wall(LocalSeconds{finish(trace)});
    return trace;
}

} // namespace gpuq::sim
