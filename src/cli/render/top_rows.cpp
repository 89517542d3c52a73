// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_rows.h"

#include "cli/render/forecast_text.h"
#include "cli/render/run_table.h"
#include "core/number.h"
#include "core/pending_reason.h"
#include "report/ending_text.h"
#include "runs/repeat.h"
#include "runs/time_used.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

using report::Cell;
using std::chrono::seconds;

std::string waiting_text(const RunStatus& status, const Overview& overview, Time now)
{
    std::string text =
        fmt::format("waits: {}", pending_reason_text(status.reason, gpus_asked(status)));
    const OwnJob* job = job_of(status, overview);
    if (job != nullptr && job->ahead) {
        text += *job->ahead == 0
                    ? "; it is the next"
                    : fmt::format("; {} before it",
                                  counted(static_cast<std::uint64_t>(*job->ahead), "job"));
    }
    const std::string forecast =
        job != nullptr && job->forecast ? forecast_text(*job->forecast, now) : "";
    text += forecast.empty() ? "" : "; " + forecast;
    if (status.expected_start) {
        return text + fmt::format("; Slurm expects it to start {}",
                                  clock_text(*status.expected_start, now));
    }
    if (const std::string start = start_text(status, now); !start.empty()) {
        return text + "; " + start;
    }
    if (!forecast.empty()) {
        return text;
    }
    const bool is_reported = status.estimate && !status.estimate->unknown.empty();
    return text + "; when it starts is not known" +
           (is_reported ? ": " + status.estimate->unknown : "");
}

std::string running_text(const RunStatus& status, Time now)
{
    std::string text = status.host.empty() ? "runs" : fmt::format("runs on {}", status.host);
    if (status.started_at) {
        text += fmt::format(" since {}", clock_text(*status.started_at, now));
    }
    if (status.ends_at) {
        const auto left = std::max(seconds(0), std::chrono::floor<seconds>(*status.ends_at - now));
        text +=
            fmt::format(", until {} ({} left)", clock_text(*status.ends_at, now), describe(left));
    }
    return text;
}

std::string state_text(const RunStatus& status, const Overview& overview, Time now)
{
    switch (status.state) {
    case RunState::submitting:
        return "is being submitted";
    case RunState::waiting:
        return waiting_text(status, overview, now);
    case RunState::running:
        return running_text(status, now);
    case RunState::ended:
        return status.ending && status.run
                   ? fmt::format("{}, {}", ending_text(*status.ending, status.run->request),
                                 clock_text(status.ending->at, now))
                   : "has ended; exit status unknown";
    case RunState::unknown:
        break;
    }
    return status.why_unknown.empty() ? "state unknown" : status.why_unknown;
}

tui::RunMark mark_of(const RunStatus& status)
{
    using tui::RunMark;
    switch (status.state) {
    case RunState::submitting:
    case RunState::waiting:
        return RunMark::waiting;
    case RunState::running:
        return status.suspended ? RunMark::attention : RunMark::running;
    case RunState::ended:
        break;
    case RunState::unknown:
        return RunMark::attention;
    }
    if (!status.ending) {
        return RunMark::ended;
    }
    return is_failure(*status.ending)                ? RunMark::failed
           : status.ending->cause == Cause::finished ? RunMark::done
                                                     : RunMark::ended;
}

/// `line`: the run's in the table of `gpuq ls`.
tui::RunRow row_of(const RunStatus& status, const report::Table& table,
                   const std::vector<Cell>& line, const Overview& overview, Time now)
{
    tui::RunRow row;
    const auto text = [&](std::string_view column) {
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            if (table.columns[i].name == column) {
                return line[i].text;
            }
        }
        return std::string();
    };
    row.id = run_id(status);
    row.state = text("state");
    row.queue = text("queue");
    row.gpus = text("gpus");
    row.time = text("time");
    row.mark = mark_of(status);
    row.ends = status.ending ? std::optional(status.ending->at) : status.ends_at;
    row.starts = start_of(status);
    row.plain = status.plain.has_value();
    row.key = lasting_key(status);
    row.active = status.state != RunState::ended;
    row.running = status.state == RunState::running;
    row.facts.push_back(state_text(status, overview, now));
    if (row.active && status.stop) {
        row.facts.push_back(fmt::format("a stop was requested by {}, {}", status.stop->by,
                                        clock_text(status.stop->at, now)));
    }
    if (row.active && status.memory_kills.value_or(0) > 0) {
        row.facts.push_back(fmt::format("the kernel has killed {} of its processes for memory",
                                        *status.memory_kills));
    }
    if (status.run) {
        const Request& request = status.run->request;
        row.name = request.name;
        row.sweep_key = request.sweep ? request.sweep->sweep.text() : "";
        row.held =
            request.gpus.share
                ? to_text(request.gpus)
                : counted(static_cast<std::uint64_t>(request.gpus.count * request.nodes), "GPU");
        row.again = row.plain ? "" : "-- " + again_text(request);
        row.saves = row.running && !row.plain; // if it can't save, stop --checkpoint reports it
        if (row.running && status.started_at) {
            const auto time = std::chrono::floor<seconds>(now - *status.started_at);
            row.since = fmt::format("running for {}", describe(std::max(seconds(0), time)));
        }
        row.facts.push_back(
            request.program.empty() // the program of a plain job may be unknown
                ? fmt::format("in {}", request.work_dir)
                : fmt::format("{}  (in {})", fmt::join(request.program, " "), request.work_dir));
        if (row.plain) {
            row.facts.emplace_back("a plain Slurm job: gpuq did not start it");
        }
        if (status.started_at && row.running && request.walltime.count() > 0) {
            const Time::duration used = request.chain && status.links.size() > 1
                                            ? Time::duration(time_used(status.links, now))
                                            : now - *status.started_at;
            row.part = std::chrono::duration<double>(used) /
                       std::chrono::duration<double>(request.walltime);
        }
    }
    return row;
}

} // namespace

const OwnJob* job_of(const RunStatus& status, const Overview& overview)
{
    const auto found =
        std::find_if(overview.jobs.begin(), overview.jobs.end(), [&](const OwnJob& own) {
            return status.job && status.job->job == own.job.id;
        });
    return found == overview.jobs.end() ? nullptr : &*found;
}

std::vector<tui::RunRow> top_rows(const std::vector<RunStatus>& runs, const Overview& overview,
                                  Time now)
{
    const report::Table table = run_table(runs, now);
    std::vector<tui::RunRow> rows;
    rows.reserve(runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
        rows.push_back(row_of(runs[i], table, table.rows[i], overview, now));
    }
    return rows;
}

} // namespace gpuq::cli
