// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/trace_lines.h"

#include "core/number.h"
#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::sim {
namespace {

// The fields of the Standard Workload Format, counted from 0. -1 means unknown.
enum Field : std::size_t {
    id,
    submit,
    wait,
    run,
    allocated,
    requested = 7,
    limit = 8,
    status = 10,
    user = 11,
    group = 12,
    queue = 14,
    partition = 15,
    fields = 18
};

std::string known(std::string_view text)
{
    return text == "-1" ? std::string() : std::string(text);
}

/// The time zero of the file, in a comment such as `; UnixStartTime: 1031270400`.
std::optional<Time> begin_in(std::string_view comment)
{
    constexpr std::string_view k_name = "UnixStartTime:";
    const std::size_t name = comment.find(k_name);
    if (name == std::string_view::npos) {
        return std::nullopt;
    }
    const auto seconds = whole_number(trimmed(comment.substr(name + k_name.size())));
    constexpr std::uint64_t k_latest = 253'402'300'799; // of the year 9999
    return seconds && *seconds > 0 && *seconds <= k_latest
               ? std::optional(Time(Seconds{static_cast<std::int64_t>(*seconds)}))
               : std::nullopt;
}

Result<TraceJob> job_in(const Line& line, const Fields& row)
{
    TraceJob job;
    job.id = row[Field::id];
    TRY_ASSIGN(const auto submitted, line.seconds(row[Field::submit], "the submit time"));
    TRY_ASSIGN(const auto ran, line.seconds(row[Field::run], "the run time"));
    TRY_ASSIGN(const auto waited, line.seconds(row[Field::wait], "the wait time"));
    TRY_ASSIGN(job.limit, line.seconds(row[Field::limit], "the requested time"));
    TRY_ASSIGN(const auto asked, line.seconds(row[Field::requested], "requested processors"));
    TRY_ASSIGN(const auto got, line.seconds(row[Field::allocated], "allocated processors"));
    if (!submitted) {
        return line.wrong("the submit time is required and can't be negative");
    }
    job.submit = *submitted;
    job.duration = ran.value_or(Seconds{-1});
    if (waited) {
        job.start = *submitted + *waited;
    }
    constexpr std::int64_t most = 1'000'000;
    const std::int64_t processors =
        asked.value_or(Seconds{0}) > Seconds{0} ? asked->count() : got.value_or(Seconds{0}).count();
    if (processors > most) {
        return line.wrong(fmt::format("more than {} processors", most));
    }
    job.gpus = static_cast<int>(processors);
    job.user = known(row[Field::user]);
    job.account = known(row[Field::group]);
    job.partition =
        known(row[Field::partition].compare("-1") == 0 ? row[Field::queue] : row[Field::partition]);
    job.state = known(row[Field::status]);
    return job;
}

} // namespace

Result<Trace> parse_swf(std::string_view text, const std::string& name)
{
    Trace trace;
    std::optional<Time> begin;
    TRY(each_line(text, name, [&](const Line& line, std::string_view column_names) -> Result<void> {
        if (trimmed(column_names).front() == ';') {
            begin = begin ? begin : begin_in(column_names);
            return {};
        }
        const Fields row = split_blanks(column_names);
        if (row.size() != Field::fields) {
            return line.wrong(fmt::format("{} fields; the Standard Workload Format has {}",
                                          row.size(), std::size_t{Field::fields}));
        }
        TRY_ASSIGN(TraceJob job, job_in(line, row));
        if (trace.jobs.size() >= k_most_trace_jobs) {
            return line.wrong(fmt::format("more than {} jobs", k_most_trace_jobs));
        }
        trace.without_gpus += job.gpus == 0 ? 1 : 0;
        trace.never_started += job.gpus != 0 && job.duration < Seconds{0} ? 1 : 0;
        if (job.gpus != 0 && job.duration >= Seconds{0}) {
            trace.jobs.push_back(std::move(job));
        }
        return {};
    }));
    const Seconds first = finish(trace);
    if (begin) {
        trace.clock = TraceClock::since(*begin + first);
    }
    return trace;
}

} // namespace gpuq::sim
