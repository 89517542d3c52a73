// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_sweep.h"

#include "cli/render/top_comparison.h"
#include "core/quote.h"
#include "report/ending_text.h"
#include "runs/insight/comparison.h"
#include "sweeps/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpuq::cli {
namespace {

using State = SweepStatus::State;
using sweeps::Try;

double gpus_of_try(const sweeps::Sweep& sweep)
{
    return static_cast<double>(std::max(sweep.run.request.gpus.count, 1)) /
           std::max(sweep.per_gpu, 1);
}

/// The parameters whose values are not the same in all tries; all of them if there is one try.
std::vector<std::size_t> differing(const SweepStatus& status)
{
    const auto& tries = status.tries;
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < status.sweep.parameters.size(); ++i) {
        const auto value = [i](const Try& entry) {
            return i < entry.values.size() ? std::string_view(entry.values[i]) : "";
        };
        if (tries.size() < 2 || std::any_of(tries.begin(), tries.end(), [&](const Try& entry) {
                return value(entry) != value(tries.front());
            })) {
            found.push_back(i);
        }
    }
    return found;
}

tui::RunMark mark_of(const Try& entry)
{
    using tui::RunMark;
    switch (state_cell(entry).tone) {
    case report::Cell::Tone::good:
        return entry.state == Try::State::running ? RunMark::running : RunMark::done;
    case report::Cell::Tone::bad:
        return RunMark::failed;
    default:
        return entry.state == Try::State::waiting ? RunMark::waiting : RunMark::ended;
    }
}

tui::TryRow row_of(const SweepStatus& status, std::size_t index,
                   const std::vector<std::size_t>& parameters)
{
    const Try& entry = status.tries[index];
    const double gpus = gpus_of_try(status.sweep);
    tui::TryRow row;
    row.number = index + 1;
    for (const std::size_t parameter : parameters) {
        row.values.push_back(parameter < entry.values.size() ? entry.values[parameter] : "");
    }
    row.state = state_cell(entry).text;
    row.mark = mark_of(entry);
    row.active = entry.state != Try::State::ended;
    row.best = entry.reached.best;
    row.last = entry.reached.last;
    row.used = std::chrono::duration_cast<std::chrono::microseconds>(gpus * entry.used);
    row.since = entry.state == Try::State::running ? entry.began_at : std::nullopt;
    row.gpus = gpus;
    return row;
}

/// The best value so far, each time that a try with one ended.
std::vector<tui::Dot> course_of(const SweepStatus& status)
{
    std::vector<std::pair<Time, double>> ends;
    for (const Try& entry : status.tries) {
        if (entry.state == Try::State::ended && entry.end && entry.reached.best) {
            ends.emplace_back(entry.end->at, *entry.reached.best);
        }
    }
    std::sort(ends.begin(), ends.end());
    std::vector<tui::Dot> course;
    std::optional<double> best;
    for (const auto& [at, value] : ends) {
        best = best && !is_better(status.sweep.metric, value, *best) ? best : value;
        course.push_back({static_cast<double>(course.size() + 1), at, best});
    }
    return course;
}

/// `, 1 failed, 1 running`.
std::string other_counts(const sweeps::Tally& tally)
{
    std::string text;
    for (const auto& [count, what] : {std::pair{tally.failed, "failed"},
                                      {tally.stopped, "stopped"},
                                      {tally.running, "running"}}) {
        text += count > 0 ? fmt::format(", {} {}", count, what) : "";
    }
    return text;
}

tui::RunMark mark_of(const TopSweep& sweep)
{
    using tui::RunMark;
    const sweeps::Tally& tally = sweep.status->tally;
    switch (sweep.state) {
    case State::waiting:
        return RunMark::waiting;
    case State::running:
        return RunMark::running;
    case State::stalled:
        return RunMark::attention;
    case State::stopped:
    case State::spent:
        return RunMark::ended;
    case State::ended:
        break;
    }
    return tally.succeeded > 0 ? RunMark::done
           : tally.failed > 0  ? RunMark::failed
                               : RunMark::ended;
}

/// When the last of its tries ended.
std::optional<Time> last_end(const SweepStatus& status)
{
    std::optional<Time> last;
    for (const Try& entry : status.tries) {
        if (entry.state == Try::State::ended && entry.end) {
            last = std::max(last.value_or(entry.end->at), entry.end->at);
        }
    }
    return last;
}

double hours(std::chrono::microseconds time)
{
    return std::chrono::duration<double, std::ratio<3600>>(time).count();
}

/// GPU-hours used and to come, and when the last try ends.
std::string time_text(const TopSweep& sweep, const sweeps::Forecast& forecast, Time now)
{
    const SweepStatus& status = *sweep.status;
    const auto& limit = status.sweep.gpu_time;
    std::string text = fmt::format("GPU-hours: {:.3g} used",
                                   hours(gpu_time_used(status.tries, status.sweep, now)));
    const std::string allowed = limit ? fmt::format(" of {:.3g}", hours(*limit)) : "";
    if (sweep.state == State::stalled) {
        return fmt::format("no worker is left, gpuq sweep retry {} starts one; {}{}",
                           shell_quoted(status.sweep.name), text, allowed);
    }
    if (sweep.state != State::waiting && sweep.state != State::running) {
        return text + allowed;
    }
    text += forecast.gpu_time ? fmt::format(", about {:.3g} to come", hours(*forecast.gpu_time))
                              : ", to come unknown";
    return text + allowed +
           (forecast.finish ? fmt::format("; finish: about {}", clock_text(*forecast.finish, now))
                            : "; finish: unknown");
}

tui::Curve curve_of(const std::string& title, const telemetry::Series& series)
{
    tui::Curve curve{title, "", {}, true};
    for (const telemetry::Series::Bucket& bucket : series.buckets()) {
        if (bucket.gap_before) {
            curve.dots.push_back({static_cast<double>(bucket.low.step), {}, {}});
        }
        curve.dots.push_back({static_cast<double>(bucket.high.step),
                              {},
                              (bucket.low.value + bucket.high.value) / 2});
    }
    return curve;
}

} // namespace

tui::Sweep top_tries(const SweepStatus& status)
{
    tui::Sweep shown;
    shown.metric = name_of(status.sweep.metric);
    const auto parameters = differing(status);
    for (const std::size_t parameter : parameters) {
        shown.parameters.push_back(status.sweep.parameters[parameter]);
    }
    shown.tries.reserve(status.tries.size());
    for (std::size_t i = 0; i < status.tries.size(); ++i) {
        shown.tries.push_back(row_of(status, i, parameters));
    }
    std::size_t rank = 0;
    for (const std::size_t index : sweeps::ranking(status.tries, status.sweep.metric)) {
        shown.tries[index].rank = ++rank;
        shown.best = rank == 1 ? index + 1 : shown.best;
    }
    shown.course = course_of(status);
    shown.done = status.tally.succeeded;
    shown.failed = status.tally.failed;
    shown.stopped = status.tally.stopped;
    shown.running = status.tally.running;
    return shown;
}

tui::RunRow top_sweep_row(const TopSweep& sweep, Time now)
{
    const SweepStatus& status = *sweep.status;
    const sweeps::Tally& tally = status.tally;
    const bool is_working = sweep.state == State::waiting || sweep.state == State::running;
    const auto forecast = is_working ? forecast_of(status.tries, status.sweep, sweep.workers, now)
                                     : sweeps::Forecast();
    tui::RunRow row;
    row.key = status.sweep.run.key.text();
    row.id = row.key.substr(row.key.rfind('-') + 1, 8);
    row.name = status.sweep.name;
    const bool is_plain = sweep.state == State::running || sweep.state == State::ended;
    row.state = (is_plain ? "" : std::string(word(sweep.state)) + ": ") +
                fmt::format("{}/{} done", tally.succeeded, tally.all()) + other_counts(tally);
    row.mark = mark_of(sweep);
    row.queue = status.sweep.run.request.queue;
    const auto gpus = sweep.workers * static_cast<std::size_t>(status.sweep.run.request.gpus.count);
    row.gpus = gpus > 0 ? std::to_string(gpus) : "";
    row.active = is_working || sweep.state == State::stalled;
    row.part =
        tally.all() > 0
            ? std::optional(static_cast<double>(tally.all() - tally.waiting - tally.running) /
                            static_cast<double>(tally.all()))
            : std::nullopt;
    row.ends = is_working ? forecast.finish : row.active ? std::nullopt : last_end(status);
    row.facts.push_back(fmt::format("{} of {} {} done", tally.succeeded, tally.all(),
                                    tally.all() == 1 ? "try" : "tries") +
                        other_counts(tally) +
                        (tally.waiting > 0 ? fmt::format(", {} waiting", tally.waiting) : ""));
    row.facts.push_back(time_text(sweep, forecast, now));
    row.sweep = sweep.shown;
    return row;
}

tui::Detail top_try_detail(const SweepStatus& status, std::size_t number,
                           const LinkProgress& output)
{
    tui::Detail detail;
    detail.key = fmt::format("{}/{}", status.sweep.run.key.text(), number);
    detail.ended = status.tries[number - 1].state == Try::State::ended;
    if (const auto* const series = sweeps::series_of(output.curves, status.sweep.metric)) {
        detail.curves.push_back(curve_of(name_of(status.sweep.metric), *series));
        detail.step = series->last() ? std::optional(series->last()->step) : std::nullopt;
    }
    if (output.last) {
        detail.step = static_cast<std::int64_t>(output.last->done);
    }
    return detail;
}

tui::Comparison top_tries_comparison(const SweepStatus& status,
                                     const std::vector<std::size_t>& numbers,
                                     const std::vector<telemetry::Curves>& curves, Time now)
{
    std::vector<RunToCompare> runs;
    for (const telemetry::Curves& of_try : curves) {
        RunToCompare run{{status.sweep.run.key}, {}, {}};
        run.training.curves = of_try;
        runs.push_back(std::move(run));
    }
    Comparison compared = compare(runs, now);
    const std::string wanted = name_of(status.sweep.metric);
    std::stable_partition(compared.metrics.begin(), compared.metrics.end(),
                          [&](const ComparedMetric& metric) { return metric.name == wanted; });
    tui::Comparison shown = top_comparison(compared, now);
    shown.keys.clear();
    shown.names.clear();
    for (const std::size_t number : numbers) {
        shown.keys.push_back(fmt::format("{}/{}", status.sweep.run.key.text(), number));
        shown.names.push_back(fmt::format("{}/{}", status.sweep.name, number));
    }
    shown.tables = {compared_tries_table(status, numbers, now)};
    return shown;
}

} // namespace gpuq::cli
