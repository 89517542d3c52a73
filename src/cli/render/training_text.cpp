// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/training_text.h"

#include "core/number.h"
#include "report/ending_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpuq::cli {
namespace {

using report::Json;
using std::chrono::seconds;
using Kind = TrainingAlarm::Kind;

std::string source_text(const Training& training)
{
    return training.source.empty() ? "its output" : training.source;
}

std::string rate_text(double per_second)
{
    if (per_second >= 0.1) {
        return fmt::format("{:.3g} steps/s", per_second);
    }
    return fmt::format("a step in {}", describe(seconds(std::llround(1 / per_second))));
}

std::string progress_text(const Training& training)
{
    if (!training.progress) {
        return "";
    }
    const telemetry::Progress& progress = *training.progress;
    std::string text = fmt::format("{} {}", progress.unit, progress.done);
    text += progress.total ? fmt::format(" of {}", *progress.total) : "";
    text += training.rate ? ", " + rate_text(*training.rate) : "";
    const std::string source =
        training.progress_is_of_output ? "its output" : source_text(training);
    return fmt::format("{}, according to {}", text, source);
}

std::string age_text(std::optional<Time> at, Time now)
{
    return at ? fmt::format(", {} ago",
                            describe(std::max(seconds(0), std::chrono::floor<seconds>(now - *at))))
              : "";
}

/// When the newest point was measured, else when its file was written.
std::optional<Time> printed_at(const telemetry::Point& point, const Training& training)
{
    return point.at ? point.at : training.written_at;
}

std::string loss_text(const Training& training, Time now)
{
    const auto* const loss = telemetry::main_loss(training.curves);
    if (loss == nullptr) {
        return "";
    }
    const telemetry::Point& last = *loss->second.last();
    const std::string tag = loss->first == "loss" ? "" : fmt::format(" ({})", loss->first);
    return fmt::format("{:.4g}{} at step {}{}, in {}", last.value, tag, last.step,
                       age_text(printed_at(last, training), now), source_text(training));
}

/// `ends 3 h after its limit: 2 links more`.
std::string limit_text(const Finish& finish, const RunStatus& status)
{
    if (finish.beyond_run > seconds(0)) {
        const bool is_chain = status.run && status.run->request.chain;
        return fmt::format(", {} after {}: gpuq extend gives it more time",
                           describe(finish.beyond_run),
                           is_chain ? "the run's time is used up" : "its limit");
    }
    if (finish.more_links > 0) {
        return fmt::format(", {} after the limit of this link: {} more",
                           describe(finish.beyond_limit),
                           counted(static_cast<std::uint64_t>(finish.more_links), "link"));
    }
    return "";
}

/// Never negative: `now` may be a moment later than the forecast.
seconds time_to(const Finish& finish, Time now)
{
    return std::max(seconds(0), std::chrono::floor<seconds>(finish.at - now));
}

/// A finish after the limit is mentioned first: a narrow screen cuts the rest.
std::string finish_text(const Finish& finish, const RunStatus& status, Time now)
{
    const std::string late = limit_text(finish, status);
    std::string text = fmt::format("about {}{}{} at the pace of {}", moment_text(finish.at, now),
                                   late, late.empty() ? "," : ";",
                                   finish.is_pace_of_link ? "this link" : "its newest steps");
    if (status.run) {
        text += fmt::format("; {:.1f} GPU-hours to go",
                            gpu_hours_of(status.run->request, time_to(finish, now)));
    }
    return text;
}

std::string alarm_text(const TrainingAlarm& alarm, Time now)
{
    if (alarm.kind == Kind::not_finite) {
        return fmt::format("{} is {} since step {}{}", alarm.tag, alarm.value, alarm.step,
                           age_text(alarm.since, now));
    }
    const seconds silence =
        alarm.since ? std::chrono::floor<seconds>(now - *alarm.since) : seconds(0);
    return fmt::format("no step for {}; usually one every {}", describe(silence),
                       describe(std::chrono::ceil<seconds>(alarm.usual)));
}

} // namespace

double gpu_hours_of(const Request& request, seconds time)
{
    return std::chrono::duration<double, std::ratio<3600>>(time).count() * request.gpus.count *
           request.nodes;
}

std::vector<std::pair<std::string_view, std::string>>
training_fields(const WholeTraining& whole, const RunStatus& status, Time now)
{
    std::vector<std::pair<std::string_view, std::string>> fields;
    fields.emplace_back("progress", progress_text(whole.training));
    fields.emplace_back("loss", loss_text(whole.training, now));
    if (whole.finish) {
        fields.emplace_back("finish", finish_text(*whole.finish, status, now));
    }
    for (const TrainingAlarm& alarm : whole.alarms) {
        fields.emplace_back("alarm", alarm_text(alarm, now));
    }
    for (const auto& [path, bytes] : whole.training.damage) {
        fields.emplace_back("damaged", fmt::format("{} of {} are damaged and were skipped",
                                                   counted(bytes, "byte"), path));
    }
    return fields;
}

Json progress_json(const WholeTraining& whole, const RunStatus& status, Time now)
{
    const Training& training = whole.training;
    if (!training.progress) {
        return {};
    }
    const auto& finish = whole.finish;
    const Json hours = finish && status.run
                           ? Json(gpu_hours_of(status.run->request, time_to(*finish, now)))
                           : Json();
    return Json::object({{"unit", training.progress->unit},
                         {"done", training.progress->done},
                         {"total", training.progress->total},
                         {"steps_per_second", training.rate},
                         {"finish_at", finish ? Json(finish->at) : Json()},
                         {"gpu_hours_to_come", hours},
                         {"beyond_limit", finish ? Json(finish->beyond_limit) : Json()},
                         {"beyond_run", finish ? Json(finish->beyond_run) : Json()},
                         {"more_links", finish ? Json(finish->more_links) : Json()}});
}

Json training_json(const WholeTraining& whole, Time now)
{
    const Training& training = whole.training;
    if (training.curves.by_tag().empty() && whole.alarms.empty()) {
        return {};
    }
    Json::Elements curves;
    for (const auto& [tag, series] : training.curves.by_tag()) {
        const telemetry::Point& last = *series.last();
        curves.push_back(Json::object({{"tag", tag},
                                       {"step", last.step},
                                       {"value", last.value},
                                       {"measured_at", printed_at(last, training)},
                                       {"points", series.points()}}));
    }
    Json::Elements alarms;
    for (const TrainingAlarm& alarm : whole.alarms) {
        alarms.push_back(
            Json::object({{"code", alarm.kind == Kind::stalled ? "stalled" : "not_finite"},
                          {"since", alarm.since},
                          {"text", alarm_text(alarm, now)}}));
    }
    return Json::object({{"source", training.source.empty() ? Json() : Json(training.source)},
                         {"curves", Json::array(std::move(curves))},
                         {"alarms", Json::array(std::move(alarms))}});
}

} // namespace gpuq::cli
