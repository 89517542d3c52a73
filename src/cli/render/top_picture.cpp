// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_picture.h"

#include "cli/render/credentials_text.h"
#include "cli/render/forecast_text.h"
#include "cli/render/free_table.h"
#include "cli/render/reservation_text.h"
#include "cli/render/run_table.h"
#include "cli/render/sample_text.h"
#include "cli/render/show_text.h"
#include "cli/render/top_gpus.h"
#include "cli/render/top_rows.h"
#include "core/number.h"
#include "core/pending_reason.h"
#include "core/walltime.h"
#include "report/ending_text.h"
#include "runs/chain.h"
#include "runs/insight/timeline.h"
#include "runs/repeat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <set>
#include <utility>

namespace gpuq::cli {
namespace {

using report::Json;
using std::chrono::seconds;

FreeGpus free_in(const Overview& overview)
{
    FreeGpus found;
    found.cluster = overview.cluster;
    found.partitions = overview.queues;
    found.waiting = overview.waiting;
    found.next.emplace();
    for (const PoolUse& use : overview.pools) {
        found.pools.push_back(use.pool);
        if (use.next) {
            found.next->push_back({use.next, use.pool.model, 1, use.pool.queues, "", {}});
        }
    }
    std::sort(found.next->begin(), found.next->end(),
              [](const NextFree& one, const NextFree& other) { return *one.at < *other.at; });
    return found;
}

/// In order, with a gap where the program restarted from a checkpoint; ends with NaN if the values
/// have become NaN.
tui::Curve curve_of(const std::string& tag, const telemetry::Series& series)
{
    const auto dot = [](const telemetry::Point& point) {
        return tui::Dot{static_cast<double>(point.step), point.at, point.value};
    };
    tui::Curve curve{tag, "", {}, true};
    for (const telemetry::Series::Bucket& bucket : series.buckets()) {
        if (bucket.gap_before) {
            curve.dots.push_back({static_cast<double>(bucket.low.step), {}, {}});
        }
        const bool low_first = bucket.low.step <= bucket.high.step;
        curve.dots.push_back(dot(low_first ? bucket.low : bucket.high));
        if (bucket.low != bucket.high) {
            curve.dots.push_back(dot(low_first ? bucket.high : bucket.low));
        }
    }
    if (series.not_finite_since()) {
        curve.dots.push_back(dot(*series.last()));
    }
    return curve;
}

/// Mean over all GPUs of a sample, in percent; nothing if it is unknown for one of them.
std::optional<double> mean_percent(const Sample& sample,
                                   std::optional<double> (*share)(const GpuSample& gpu))
{
    double sum = 0;
    for (const GpuSample& gpu : sample.gpus) {
        const auto one = share(gpu);
        if (!one) {
            return std::nullopt;
        }
        sum += 100 * *one;
    }
    return sample.gpus.empty() ? std::nullopt
                               : std::optional(sum / static_cast<double>(sample.gpus.size()));
}

std::optional<double> busy(const Sample& sample)
{
    return mean_percent(sample, busy_share);
}

std::optional<double> memory(const Sample& sample)
{
    return mean_percent(sample, memory_share);
}

double seconds_of(Time at)
{
    return std::chrono::duration<double>(at.time_since_epoch()).count();
}

/// Empty if nothing is known at any time: the facts then give the reason.
template <typename Measure>
tui::Curve curve_of(const std::vector<Sample>& samples, const char* title, const char* unit,
                    const Measure& measure)
{
    tui::Curve curve{title, unit, {}, false};
    for (const Sample& sample : samples) {
        curve.dots.push_back({seconds_of(sample.at), sample.at, measure(sample)});
    }
    const bool known = std::any_of(curve.dots.begin(), curve.dots.end(),
                                   [](const tui::Dot& dot) { return dot.value.has_value(); });
    return known ? curve : tui::Curve{};
}

/// The first of the samples from which the processor usage up to `last` is computed; `last` itself
/// if there is none. A node without cgroups counts its processes only every five seconds.
std::size_t counted_from(const std::vector<Sample>& samples, std::size_t last)
{
    constexpr auto k_window = std::chrono::seconds(10);
    const auto used = [&](std::size_t at) -> const Reading& {
        return samples[at].run[RunMetric::cpu];
    };
    std::size_t first = last;
    while (first > 0 && used(first).known() && used(first - 1).known() &&
           *used(first - 1).value() <= *used(first).value() &&
           (first == last || samples[last].at - samples[first - 1].at <= k_window)) {
        --first;
    }
    return first;
}

/// The rate of a counter per second; unknown after a time without measurements.
tui::Curve cores_of(const std::vector<Sample>& samples)
{
    tui::Curve curve{"processors", "", {}, false};
    bool known = false;
    for (std::size_t i = 1; i < samples.size(); ++i) {
        const Sample& before = samples[counted_from(samples, i)];
        const auto time = std::chrono::duration<double, std::milli>(samples[i].at - before.at);
        curve.dots.push_back({seconds_of(samples[i].at), samples[i].at, {}});
        if (time.count() > 0) {
            curve.dots.back().value = static_cast<double>(*samples[i].run[RunMetric::cpu].value() -
                                                          *before.run[RunMetric::cpu].value()) /
                                      time.count();
            known = true;
        }
    }
    return known ? curve : tui::Curve{};
}

std::optional<double> main_memory(const Sample& sample)
{
    constexpr double k_gib = 1024.0 * 1024 * 1024;
    const Reading& memory = sample.run[RunMetric::memory];
    return memory.known() ? std::optional(static_cast<double>(*memory.value()) / k_gib)
                          : std::nullopt;
}

/// `link 2 of about 4, 1 h of 4 h used; newest checkpoint epoch-12.pt, 3 min ago`. Empty for a run
/// of one link.
std::string chain_text(const TopCloser& closer, Time now)
{
    const RunStatus& status = closer.run;
    if (!status.run || !status.run->request.chain) {
        return "";
    }
    const Request& request = status.run->request;
    const auto expected = expected_links(request, status.links, now);
    const auto used = time_used(status.links, now);
    std::string text = fmt::format("link {}", status.link.value);
    if (expected && status.state != RunState::ended) {
        text += fmt::format(" of about {}", *expected);
    }
    text += fmt::format(", {} of {} used, {:.1f} GPU-hours", describe(used),
                        to_text(request.walltime), gpu_hours_of(request, used));
    std::string checkpoint;
    for (const LinkPast& link : status.links) {
        checkpoint = link.saved() ? link.checkpoint : checkpoint;
    }
    text += checkpoint.empty() ? "; no checkpoint yet"
                               : fmt::format("; newest checkpoint {}",
                                             checkpoint.substr(checkpoint.find_last_of('/') + 1));
    if (!checkpoint.empty() && closer.saved_at) {
        const auto age = std::chrono::floor<seconds>(now - *closer.saved_at);
        text += fmt::format(", {} ago", describe(std::max(seconds(0), age)));
    }
    return text + (status.next_job
                       ? fmt::format("; job {} waits for its end", status.next_job->value)
                       : "");
}

void add_main_loss(tui::Detail& detail, const Training& training)
{
    if (const auto* const loss = telemetry::main_loss(training.curves)) {
        detail.curves.push_back(curve_of(loss->first, loss->second));
        const auto& last = loss->second.last();
        detail.loss = last ? std::optional(last->value) : std::nullopt;
    }
}

/// Losses first.
void add_other_measures(tui::Detail& detail, const Training& training)
{
    const auto* const main = telemetry::main_loss(training.curves);
    for (const bool of_loss : {true, false}) {
        for (const auto& [tag, series] : training.curves.by_tag()) {
            const bool is_main = main != nullptr && tag == main->first;
            if (telemetry::is_loss(tag) == of_loss && !is_main) {
                detail.curves.push_back(curve_of(tag, series));
            }
        }
    }
}

std::optional<double> part_of(const std::optional<telemetry::Progress>& progress)
{
    return progress && progress->total.value_or(0) > 0
               ? std::optional(static_cast<double>(progress->done) /
                               static_cast<double>(*progress->total))
               : std::nullopt;
}

void add_gpu_uses(tui::Detail& detail, const TopCloser& closer)
{
    for (const NodeSample& node : closer.newest) {
        for (std::size_t i = 0; node.newest && i < node.newest->gpus.size(); ++i) {
            const GpuSample& gpu = node.newest->gpus[i];
            detail.gpus.push_back({fmt::format("{} GPU {}", node.header.node, i), gpu_text(gpu),
                                   busy_share(gpu), memory_share(gpu)});
        }
    }
}

tui::Event::Kind kind_of(TimelineEntry::Kind kind)
{
    using From = TimelineEntry::Kind;
    using To = tui::Event::Kind;
    switch (kind) {
    case From::waiting:
        return To::waiting;
    case From::running:
        return To::running;
    case From::checkpoint:
        return To::checkpoint;
    case From::idle:
        return To::idle;
    case From::credentials:
        return To::credentials;
    case From::ended:
        return To::ended;
    case From::notice:
    case From::memory:
    case From::retry:
    case From::other:
        break;
    }
    return To::notice;
}

/// A text without the path of the run's directory in front of a file in it.
std::string within_run(std::string text, const RunKey& key)
{
    const std::string directory = key.text() + "/";
    const std::size_t at = text.find(directory);
    if (at != std::string::npos) {
        const std::size_t begin = text.rfind(' ', at) + 1; // 0 without a blank
        text.erase(begin, at + directory.size() - begin);
    }
    return text;
}

void add_events(tui::Detail& detail, const TopCloser& closer, Time now)
{
    const Timeline timeline = timeline_of(
        closer.run, closer.links, [&](const Event& event) { return event_text(event, closer.run); },
        now);
    if (timeline.left_out > 0) {
        detail.events.push_back(
            {tui::Event::Kind::notice,
             timeline.begin,
             {},
             fmt::format("entries left out, mostly checkpoints: {}", timeline.left_out)});
    }
    for (const TimelineEntry& entry : timeline.entries) {
        const bool is_ongoing = entry.extent == TimelineEntry::Extent::ongoing;
        detail.events.push_back({kind_of(entry.kind), entry.from,
                                 is_ongoing ? std::optional(now) : entry.until,
                                 within_run(entry.text, closer.run.key)});
    }
}

} // namespace

std::string top_answer(const Overview& overview, Time now)
{
    return !overview.at ? ""
           : overview.whole_at
               ? free_answer(free_in(overview), now)
               : free_answer(free_in(overview), now) + "; other waiting jobs not known yet";
}

std::string top_trouble(const TopFound& found)
{
    const std::string& slurm =
        found.overview.silent.empty() ? found.trouble : found.overview.silent;
    const std::string disk = found.unlisted ? found.unlisted->text : "";
    return disk + (disk.empty() || slurm.empty() ? "" : "; ") + slurm;
}

tui::Picture top_picture(const TopFound& found, Time now)
{
    tui::Picture picture;
    picture.cluster = found.overview.cluster;
    picture.slurm_at = found.overview.at;
    picture.answer = top_answer(found.overview, now);
    if (found.overview.at) {
        picture.short_answers = short_free_answers(free_in(found.overview), now);
        for (std::string& answer : picture.short_answers) {
            answer += found.overview.whole_at ? "" : "; waiting jobs unknown";
        }
    }
    picture.trouble = top_trouble(found);
    picture.listed = !found.unlisted;
    add_gpus(picture, found, now);
    std::set<std::string> listed;
    for (const TopSweep& sweep : found.sweeps) {
        listed.insert(sweep.status->sweep.run.key.text());
    }
    const auto add = [&](tui::RunRow row) {
        row.sweep_key = listed.contains(row.sweep_key) ? row.sweep_key : "";
        picture.runs.push_back(std::move(row));
    };
    auto old = found.old.begin();
    auto sweep = found.sweeps.begin();
    // Those made after the run with this key. A sweep is older than its workers, so it is listed
    // behind newer runs and they follow it only on the screen.
    const auto add_until = [&](const std::string& key) {
        while (true) {
            const bool has_old = old != found.old.end() && (*old)->key > key;
            const bool has_sweep =
                sweep != found.sweeps.end() && sweep->status->sweep.run.key.text() > key;
            if (has_old && (!has_sweep || (*old)->key > sweep->status->sweep.run.key.text())) {
                add(**old++);
            } else if (has_sweep) {
                picture.runs.push_back(top_sweep_row(*sweep++, now));
            } else {
                return;
            }
        }
    };
    picture.runs.reserve(found.runs.size() + found.old.size() + found.sweeps.size());
    for (tui::RunRow& row : top_rows(found.runs, found.overview, now)) {
        if (!row.plain) {
            add_until(row.key);
        }
        add(std::move(row));
    }
    add_until("");
    return picture;
}

tui::Detail top_detail(const TopCloser& closer, Time now)
{
    tui::Detail detail;
    detail.key = closer.run.key.text();
    detail.ended = closer.run.state == RunState::ended;
    if (closer.idle.finding) {
        const bool has_ended = closer.run.state == RunState::ended;
        detail.facts.push_back(
            fmt::format("idle: {}", describe(*closer.idle.finding,
                                             has_ended ? std::nullopt : std::optional(now))));
    }
    if (closer.idle.exemption && closer.run.state != RunState::ended) {
        detail.facts.push_back(fmt::format("exempt: {}", describe(*closer.idle.exemption)));
    }
    for (const auto& [name, text] : training_fields(closer.training, closer.run, now)) {
        if (!text.empty()) {
            detail.facts.push_back(fmt::format("{}: {}", name, text));
        }
    }
    if (closer.run.state != RunState::ended) {
        for (const auto& [name, text] : sample_lines(closer.newest, now)) {
            detail.facts.push_back(fmt::format("{}: {}", name, text));
        }
    }
    if (std::string chain = chain_text(closer, now); !chain.empty()) {
        detail.facts.push_back(std::move(chain));
    }
    if (closer.credentials && closer.run.state != RunState::ended) {
        for (const auto& [name, text] : credential_fields(*closer.credentials, closer.run, now)) {
            detail.facts.push_back(fmt::format("{}: {}", name, text));
        }
    }
    const Training& training = closer.training.training;
    add_main_loss(detail, training);
    const auto add = [&](std::initializer_list<tui::Curve> of_machine) {
        std::copy_if(of_machine.begin(), of_machine.end(), std::back_inserter(detail.curves),
                     [](const tui::Curve& curve) { return !curve.dots.empty(); });
    };
    add({curve_of(closer.samples, "GPUs busy", "%", busy)});
    add_other_measures(detail, training);
    add({curve_of(closer.samples, "GPU memory", "%", memory), cores_of(closer.samples),
         curve_of(closer.samples, "memory", "GiB", main_memory)});
    detail.progress = part_of(training.progress);
    if (closer.training.finish && closer.run.state == RunState::running) {
        detail.finish = closer.training.finish->at;
    }
    if (closer.run.run) {
        detail.options = options_kept(closer.run.run->request, now);
    }
    add_gpu_uses(detail, closer);
    add_events(detail, closer, now);
    return detail;
}

report::Json::Members top_document(const TopFound& found, Time now)
{
    Json::Elements pools;
    for (const PoolUse& use : found.overview.pools) {
        pools.push_back(
            Json::object({{"model", use.pool.model.empty() ? Json() : Json(use.pool.model)},
                          {"queues", Json::array(use.pool.queues)},
                          {"total", use.pool.total},
                          {"free", use.pool.free},
                          {"mine", use.mine},
                          {"others", of_others(use)},
                          {"down", use.pool.down},
                          {"blocked", use.pool.blocked},
                          {"next_free_at", use.next},
                          {"start_p50", use.forecast ? Json(use.forecast->p50) : Json()},
                          {"start_p90", use.forecast ? Json(use.forecast->p90) : Json()},
                          {"shares", shares_json(use.pool.shares)}}));
    }
    Json::Elements runs;
    for (const RunStatus& status : found.runs) {
        const OwnJob* job = job_of(status, found.overview);
        const auto forecast = job == nullptr ? std::nullopt : job->forecast;
        runs.push_back(Json::object({{"run", run_json(status, now, forecast)},
                                     {"jobs_ahead", job == nullptr ? Json() : Json(job->ahead)}}));
    }
    return {{"cluster", found.overview.cluster},
            {"asked_at", found.overview.at},
            {"slurm_silent", found.overview.silent.empty() ? Json() : Json(found.overview.silent)},
            {"pools", Json::array(std::move(pools))},
            {"runs", Json::array(std::move(runs))},
            {"reservations", reservations_json(found.overview.reserved, now)}};
}

} // namespace gpuq::cli
