// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/why_text.h"

#include "cli/render/forecast_text.h"
#include "cli/render/reservation_text.h"
#include "cli/render/run_table.h"
#include "core/pending_reason.h"
#include "report/ending_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace gpuq::cli {
namespace {

using report::Json;
using Lines = std::vector<std::string>;

bool is_ours(const std::string& text, const std::string& word)
{
    return word.empty() || text.find(word) != std::string::npos;
}

std::string reason_text(const Why& why)
{
    const GpuRequest asked = gpus_asked(why.run);
    if (why.lacking.empty()) {
        return pending_reason_text(why.run.reason, asked);
    }
    const std::string_view free = asked.share        ? "a share of a GPU is free"
                                  : asked.count == 1 ? "a GPU is free"
                                                     : "enough GPUs are free";
    return fmt::format("{}, but not enough {}", free, why.lacking);
}

/// `others are before you (Priority)`: includes Slurm's keyword, which users may search for.
std::string reason_with_keyword(const Why& why)
{
    const std::string text = reason_text(why);
    const std::string& word = why.run.reason;
    return is_ours(text, word) ? text : fmt::format("{} ({})", text, word);
}

std::string position_line(const Why& why)
{
    const std::string queue = why.run.queue.empty() ? "" : " in queue " + why.run.queue;
    if (!why.ahead) {
        return fmt::format("position: {}{}",
                           is_in_line(why.run.reason) ? "not known" : "not in line yet", queue);
    }
    const std::string first = *why.ahead == 0   ? "no job is ahead"
                              : *why.ahead == 1 ? "1 job is ahead"
                                                : fmt::format("{} jobs are ahead", *why.ahead);
    return fmt::format("position: {}{}; {}", *why.ahead + 1, queue, first);
}

std::string unknown_start(const RunStatus& run)
{
    if (!is_in_line(run.reason)) {
        return "expected start: not known while it is not in line";
    }
    if (run.estimate && !run.estimate->unknown.empty()) {
        return fmt::format("expected start: not known; Slurm has made no plan for it yet, and {}",
                           run.estimate->unknown);
    }
    return "expected start: not known; Slurm has made no plan for it yet";
}

std::string start_line(const RunStatus& run, Time now)
{
    const auto basis = basis_of_start(run);
    if (!basis) {
        return unknown_start(run);
    }
    const Time start = *start_of(run);
    const std::string in =
        start > now ? describe(std::chrono::ceil<std::chrono::seconds>(start - now)) : "a moment";
    if (*basis == "limits") {
        return fmt::format("expected start: by {} (in {}) at the latest, when {}; later only if "
                           "other jobs are put before it",
                           clock_text(start, now), in, basis_text(*run.estimate));
    }
    return fmt::format("expected start: {} (in {}), {}", clock_text(start, now), in,
                       *basis == "backfill" ? "by Slurm's backfill plan, or sooner"
                                            : "as requested");
}

/// Omitted where the line of the expected start has the same reason.
void add_forecast(Lines& lines, const Why& why, Time now)
{
    if (!why.forecast) {
        return;
    }
    const StartForecast& forecast = *why.forecast;
    const auto& estimate = why.run.estimate;
    if (forecast.p50) {
        lines.push_back("forecast: it " + forecast_in_full(forecast, now));
    } else if (!estimate || estimate->unknown != forecast.unknown) {
        lines.push_back("forecast: not known: " + forecast.unknown);
    }
}

void add_advice(Lines& lines, const std::vector<Advice>& advice)
{
    if (advice.empty()) {
        return;
    }
    std::size_t width = 0;
    for (const Advice& one : advice) {
        width = std::max(width, one.command.size());
    }
    lines.emplace_back("suggestions:");
    for (const Advice& one : advice) {
        lines.push_back(fmt::format("  {:<{}}  {}", one.command, width, one.why));
    }
}

Lines waiting_lines(const Why& why, Time now)
{
    Lines lines = {
        fmt::format("{} {} waits: {}", noun(why.run), run_title(why.run), reason_with_keyword(why)),
        position_line(why), start_line(why.run, now)};
    add_forecast(lines, why, now);
    for (const ReservedGpus& one : why.reserved) {
        lines.push_back("reservation: " + reservation_line(one, now));
    }
    add_advice(lines, why.advice);
    if (!why.policy.empty()) {
        lines.emplace_back("policy for such a run:");
        for (const std::string& line : why.policy) {
            lines.push_back("  " + line);
        }
    }
    return lines;
}

Lines running_lines(const RunStatus& run, Time now)
{
    const std::string since =
        run.started_at ? fmt::format(", since {}", clock_text(*run.started_at, now)) : "";
    const std::string until =
        run.ends_at ? fmt::format(", until {} at the latest", clock_text(*run.ends_at, now)) : "";
    if (run.suspended) {
        return {fmt::format("{} {} has its GPUs{}, and is suspended by an operator", noun(run),
                            run_title(run), since),
                "it continues when resumed (scontrol resume)"};
    }
    return {fmt::format("{} {} does not wait: it is running{}{}", noun(run), run_title(run), since,
                        until),
            run.run && run.run->request.pty
                ? fmt::format("back to it: gpuq attach {}", run_id(run))
                : fmt::format("its output: gpuq logs -f {}", run_id(run))};
}

Lines ended_lines(const RunStatus& run)
{
    const std::string how = run.ending && run.run
                                ? "it " + ending_text(*run.ending, run.run->request)
                                : std::string("exit status unknown");
    return {fmt::format("{} {} does not wait: it has ended; {}", noun(run), run_title(run), how),
            fmt::format("everything about it: gpuq show {}", run_id(run))};
}

Json json_of(const Advice& advice)
{
    return Json::object({{"code", advice.code},
                         {"command", advice.command.empty() ? Json() : Json(advice.command)},
                         {"text", advice.why}});
}

} // namespace

std::vector<std::string> why_lines(const Why& why, Time now)
{
    const RunStatus& run = why.run;
    switch (run.state) {
    case RunState::waiting:
        return waiting_lines(why, now);
    case RunState::running:
        return running_lines(run, now);
    case RunState::ended:
        return ended_lines(run);
    case RunState::submitting:
        return {
            fmt::format("run {} is being submitted: Slurm has not taken it yet", run_title(run)),
            fmt::format("in a moment: gpuq why {}", run_id(run))};
    case RunState::unknown:
        break;
    }
    return {fmt::format("{} {}: state unknown: {}", noun(run), run_title(run), run.why_unknown)};
}

Json::Members why_document(const Why& why, Time now)
{
    const bool waits = why.run.state == RunState::waiting;
    Json::Elements advice;
    for (const Advice& one : why.advice) {
        advice.push_back(json_of(one));
    }
    Json::Elements policy;
    for (const std::string& line : why.policy) {
        policy.push_back(line);
    }
    Json::Elements warnings;
    for (const std::string& text : why.warnings) {
        warnings.push_back(Json::object({{"code", "slurm_unreachable"}, {"text", text}}));
    }
    return {{"run", run_json(why.run, now, why.forecast)},
            {"waits", why.run.state == RunState::unknown ? Json() : Json(waits)},
            {"reason_text", waits ? Json(reason_text(why)) : Json()},
            {"ahead", why.ahead},
            {"position", why.ahead ? Json(*why.ahead + 1) : Json()},
            {"expected_start_basis", waits ? Json(basis_of_start(why.run)) : Json()},
            {"expected_start_unknown", waits && why.run.estimate && !start_of(why.run)
                                           ? Json(why.run.estimate->unknown)
                                           : Json()},
            {"start_p50", why.forecast ? Json(why.forecast->p50) : Json()},
            {"start_p90", why.forecast ? Json(why.forecast->p90) : Json()},
            {"start_unknown",
             why.forecast && !why.forecast->unknown.empty() ? Json(why.forecast->unknown) : Json()},
            {"advice", Json::array(std::move(advice))},
            {"policy", Json::array(std::move(policy))},
            {"reservations", reservations_json(why.reserved, now)},
            {"warnings", Json::array(std::move(warnings))}};
}

} // namespace gpuq::cli
