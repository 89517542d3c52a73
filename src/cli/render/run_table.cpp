// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/run_table.h"

#include "core/pending_reason.h"
#include "report/ending_text.h"
#include "runs/chain.h"
#include "runs/find.h"
#include "runs/time_used.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace gpuq::cli {
namespace {

using report::Cell;
using report::Column;
using report::Json;
using std::chrono::seconds;

const Request* request_of(const RunStatus& status)
{
    return status.run ? &status.run->request : nullptr;
}

bool is_chain(const RunStatus& status)
{
    return status.run && status.run->request.chain;
}

/// `link 3 of about 8`, or `link 3`.
std::string link_text(const RunStatus& status, Time now)
{
    const auto expected = expected_links(status.run->request, status.links, now);
    if (!expected) {
        return fmt::format("link {}", status.link.value);
    }
    return *expected > status.link.value
               ? fmt::format("link {} of about {}", status.link.value, *expected)
               : fmt::format("link {}, the last", status.link.value);
}

std::optional<seconds> time_limit(const RunStatus& status)
{
    const Request* request = request_of(status);
    return request && request->walltime.count() > 0 ? std::optional<seconds>(request->walltime)
                                                    : std::nullopt;
}

std::string time_text(const RunStatus& status, Time now)
{
    const auto used = time_used(status, now);
    const auto limit = time_limit(status);
    const std::string used_text = used ? describe(*used) : "-";
    return limit ? fmt::format("{} / {}", used_text, describe(*limit)) : used_text;
}

Cell ended_cell(const RunStatus& status)
{
    using Tone = Cell::Tone;
    if (!status.ending) {
        return {"ended", Tone::dim};
    }
    switch (status.ending->cause) {
    case Cause::finished:
        return status.ending->status == 0 ? Cell("done", Tone::good) : Cell("failed", Tone::bad);
    case Cause::crashed:
        return {"crashed", Tone::bad};
    case Cause::time_limit:
        return {"time limit", Tone::bad};
    case Cause::memory:
        return {"out of memory", Tone::bad};
    case Cause::gpu_memory:
        return {"GPU out of memory", Tone::bad};
    case Cause::node_failed:
        return {"node failed", Tone::bad};
    case Cause::preempted:
        return {"preempted", Tone::bad};
    case Cause::stopped:
        return was_released(*status.ending) ? Cell("released", Tone::warning)
                                            : Cell("stopped", Tone::dim);
    case Cause::cancelled:
        return {"cancelled", Tone::dim};
    case Cause::not_started:
        return {"not started", Tone::bad};
    case Cause::input_lost:
        return {"input lost", Tone::bad};
    case Cause::lost:
        return {"lost", Tone::bad};
    }
    return {"ended", Tone::dim};
}

std::string waiting_text(const RunStatus& status, Time now)
{
    std::string text =
        fmt::format("waiting: {}", pending_reason_text(status.reason, gpus_asked(status)));
    if (const auto start = start_of(status); start && *start > now) {
        text +=
            fmt::format("; {} {}", status.expected_start ? "from" : "by", clock_text(*start, now));
    }
    return text;
}

Cell state_cell(const RunStatus& status, Time now)
{
    using Tone = Cell::Tone;
    if (status.stop && status.state != RunState::ended) {
        return {"stopping", Tone::warning};
    }
    switch (status.state) {
    case RunState::submitting:
        return {"submitting", Tone::warning};
    case RunState::waiting:
        return {waiting_text(status, now), Tone::warning};
    case RunState::running:
        if (is_chain(status) && !status.suspended) {
            return {"running, " + link_text(status, now), Tone::good};
        }
        return status.suspended ? Cell("suspended", Tone::warning) : Cell("running", Tone::good);
    case RunState::ended:
        return ended_cell(status);
    case RunState::unknown:
        return {"unknown", Tone::warning};
    }
    return {"unknown", Tone::warning};
}

int gpus_of(const Request& request)
{
    return request.gpus.count * request.nodes;
}

std::string gpus_text(const Request& request)
{
    if (request.gpus.share) {
        return to_text(request.gpus);
    }
    const std::string model = request.gpus.model.value_or("");
    return model.empty() ? std::to_string(gpus_of(request))
                         : fmt::format("{} {}", gpus_of(request), model);
}

Json share_json(const std::optional<GpuShare>& share)
{
    return share ? Json::object({{"kind", word(share->kind)},
                                 {"parts", share->parts},
                                 {"per_gpu", share->per_gpu}})
                 : Json();
}

/// When it ended or, while it runs, must end.
std::optional<Time> end_of(const RunStatus& status)
{
    return status.ending ? std::optional(status.ending->at) : status.ends_at;
}

std::string moment(const std::optional<Time>& time, Time now)
{
    return time ? clock_text(*time, now) : "-";
}

std::optional<std::string> cluster_of(const RunStatus& status)
{
    return status.job   ? std::optional(status.job->cluster)
           : status.run ? std::optional(status.run->cluster)
                        : std::nullopt;
}

std::string_view kind_word(const RunStatus& status)
{
    return status.plain ? "plain" : "run";
}

std::vector<Cell> row_of(const RunStatus& status, Time now)
{
    const Request* request = request_of(status);
    return {run_id(status),
            request ? request->name : "?",
            state_cell(status, now),
            status.queue.empty() ? "?" : status.queue,
            request ? gpus_text(*request) : "?",
            time_text(status, now),
            status.ending ? std::to_string(status.ending->status) : "-",
            status.ending ? std::string(word(status.ending->cause)) : "-",
            status.host.empty() ? "-" : status.host,
            status.run ? clock_text(status.run->submitted_at, now) : "?",
            moment(status.started_at, now),
            moment(end_of(status), now),
            cluster_of(status).value_or("?"),
            status.plain ? "-" : status.key.text(),
            std::string(kind_word(status))};
}

template <typename Value>
std::optional<Value> known(const Value& value)
{
    return value == Value() ? std::nullopt : std::optional(value);
}

/// Without times if they have passed: the forecast is old then.
StartForecast current(const std::optional<StartForecast>& forecast, Time now)
{
    const auto last = !forecast ? std::nullopt : forecast->p90 ? forecast->p90 : forecast->p50;
    return last && *last >= now ? *forecast : StartForecast{};
}

} // namespace

Json run_json(const RunStatus& status, Time now, const std::optional<StartForecast>& forecast)
{
    const StartForecast start =
        status.state == RunState::waiting ? current(forecast, now) : StartForecast{};
    const Request* request = request_of(status);
    const Ending* ending = status.ending ? &*status.ending : nullptr;
    return Json::object({
        {"kind", kind_word(status)},
        {"key", status.plain ? Json() : Json(status.key.text())},
        {"job", status.job ? Json(status.job->job) : Json()},
        {"called", run_id(status)},
        {"cluster", cluster_of(status)},
        {"name", request ? Json(request->name) : Json()},
        {"state", status.state == RunState::unknown ? Json() : Json(word(status.state))},
        {"reason", known(status.reason)},
        {"queue", known(status.queue)},
        {"gpus", request ? Json(gpus_of(*request)) : Json()},
        {"gpu_model", request ? Json(request->gpus.model) : Json()},
        {"gpu_share", request ? share_json(request->gpus.share) : Json()},
        {"nodes", request ? Json(request->nodes) : Json()},
        {"host", known(status.host)},
        {"address", status.state == RunState::running ? known(status.address) : Json()},
        {"submitted_at", status.run ? Json(status.run->submitted_at) : Json()},
        {"expected_start", start_of(status)},
        {"expected_start_basis", basis_of_start(status)},
        {"expected_start_after",
         start_of(status) && !status.expected_start ? Json(status.estimate->after) : Json()},
        {"start_p50", start.p50},
        {"start_p90", start.p90},
        {"started_at", status.started_at},
        {"suspended", status.suspended},
        {"ends_at", status.state == RunState::running ? Json(status.ends_at) : Json()},
        {"ended_at", ending ? Json(ending->at) : Json()},
        {"time_used", time_used(status, now)},
        {"time_limit", time_limit(status)},
        {"exit", ending ? Json(ending->status) : Json()},
        {"cause", ending ? Json(word(ending->cause)) : Json()},
        {"detail", ending ? Json(known(ending->detail)) : Json()},
        {"first_job", status.first_job ? Json(status.first_job)
                      : status.job     ? Json(status.job->job)
                                       : Json()},
        {"link", status.plain ? Json() : Json(status.link.value)},
        {"links_expected",
         is_chain(status) ? Json(expected_links(status.run->request, status.links, now)) : Json()},
        {"next_job", status.next_job},
        {"stop_asked_by", status.stop ? Json(status.stop->by) : Json()},
        {"why_unknown",
         status.state == RunState::unknown ? Json(known(status.why_unknown)) : Json()},
    });
}

report::Table run_table(const std::vector<RunStatus>& runs, Time now)
{
    using Align = Column::Align;
    using Shrink = Column::Shrink;
    report::Table table;
    constexpr auto k_on_request = Column::Show::on_request;
    const bool any_plain = std::any_of(runs.begin(), runs.end(),
                                       [](const RunStatus& one) { return one.plain.has_value(); });
    table.columns = {
        {"id", "ID", Align::right},
        {.name = "name", .title = "NAME", .shrink = Shrink::yes, .cut = Column::Cut::middle},
        {"state", "STATE", Align::left, Shrink::yes},
        {"queue", "QUEUE", Align::left, Shrink::first, 4},
        {"gpus", "GPUS", Align::right, Shrink::no, 3},
        {"time", "TIME / LIMIT", Align::left, Shrink::no, 2},
        {"exit", "EXIT", Align::right, Shrink::no, 1},
        {"cause", "CAUSE", Align::left, Shrink::no, 0, k_on_request},
        {"node", "NODE", Align::left, Shrink::no, 0, k_on_request},
        {"submitted", "SUBMITTED", Align::left, Shrink::no, 0, k_on_request},
        {"started", "STARTED", Align::left, Shrink::no, 0, k_on_request},
        {"ends", "ENDS", Align::left, Shrink::no, 0, k_on_request},
        {"cluster", "CLUSTER", Align::left, Shrink::no, 0, k_on_request},
        {"key", "KEY", Align::left, Shrink::no, 0, k_on_request},
        {"kind", "KIND", Align::left, Shrink::no, 5,
         any_plain ? Column::Show::always : k_on_request}};
    for (const RunStatus& status : runs) {
        table.rows.push_back(row_of(status, now));
    }
    return table;
}

report::Json::Members run_list(const RunStatuses& statuses,
                               const std::vector<std::string>& shortages, Time now,
                               const std::string& plain_unknown, const RunForecasts& forecasts)
{
    Json::Elements runs;
    for (const RunStatus& status : statuses.runs) {
        const auto forecast = forecasts.find(status.key);
        runs.push_back(
            run_json(status, now,
                     forecast == forecasts.end() ? std::nullopt : std::optional(forecast->second)));
    }
    Json::Elements warnings;
    if (!statuses.slurm_silent.empty()) {
        warnings.push_back(
            Json::object({{"code", "slurm_unreachable"}, {"text", statuses.slurm_silent}}));
    }
    if (!plain_unknown.empty()) {
        warnings.push_back(Json::object({{"code", "plain_jobs_unknown"}, {"text", plain_unknown}}));
    }
    for (const std::string& text : shortages) {
        warnings.push_back(Json::object({{"code", "ticket_short"}, {"text", text}}));
    }
    return {{"runs", Json::array(std::move(runs))}, {"warnings", Json::array(std::move(warnings))}};
}

std::string run_id(const RunStatus& status)
{
    if (status.plain && !status.plain->called.empty()) {
        return status.plain->called;
    }
    if (status.first_job) {
        return std::to_string(status.first_job->value);
    }
    return status.job ? std::to_string(status.job->job.value) : short_key(status.key);
}

std::string lasting_key(const RunStatus& status)
{
    return status.plain ? std::to_string(status.plain->id.value) : status.key.text();
}

std::string_view noun(const RunStatus& status)
{
    return status.plain ? "job" : "run";
}

std::optional<Time> start_of(const RunStatus& status)
{
    const bool waits = status.state == RunState::waiting;
    if (status.expected_start || !waits || !status.estimate) {
        return status.expected_start;
    }
    return status.estimate->at;
}

std::optional<std::string> basis_of_start(const RunStatus& status)
{
    if (!start_of(status)) {
        return std::nullopt;
    }
    if (!status.expected_start) {
        return "limits";
    }
    return kind_of_reason(status.reason) == PendingReason::Kind::later ? "begin_time" : "backfill";
}

std::string start_text(const RunStatus& status, Time now)
{
    const auto start = start_of(status);
    if (!start || (!status.expected_start && *start < now)) { // an old estimate that was not met
        return "";
    }
    return status.expected_start
               ? fmt::format("expected start {}", clock_text(*start, now))
               : fmt::format("starts by {} at the latest, when {}", clock_text(*start, now),
                             basis_text(*status.estimate));
}

std::string run_title(const RunStatus& status)
{
    return status.run ? fmt::format("{} ({})", run_id(status), status.run->request.name)
                      : run_id(status);
}

} // namespace gpuq::cli
