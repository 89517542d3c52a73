// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_picture.h"

#include "cli/render/credentials_text.h"
#include "cli/render/free_table.h"
#include "cli/render/run_table.h"
#include "cli/render/sample_text.h"
#include "core/number.h"
#include "core/pending_reason.h"
#include "core/walltime.h"
#include "report/ending_text.h"
#include "runs/chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace gpuq::cli {
namespace {

using report::Cell;
using report::Column;
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

std::string count_text(const std::optional<int>& count)
{
    return count ? std::to_string(*count) : "?";
}

std::optional<int> of_others(const PoolUse& use)
{
    return use.mine && use.pool.in_use ? std::optional(std::max(0, *use.pool.in_use - *use.mine))
                                       : std::nullopt;
}

report::Table gpu_table(const Overview& overview, Time now)
{
    using Align = Column::Align;
    using Tone = Cell::Tone;
    report::Table table;
    table.columns = {{"model", "GPU"},
                     {"queues", "QUEUES", Align::left, Column::Shrink::yes},
                     {"free", "FREE", Align::right},
                     {"mine", "MINE", Align::right},
                     {"others", "OTHERS", Align::right},
                     {"down", "DOWN", Align::right, Column::Shrink::no, 2},
                     {"blocked", "BLOCKED", Align::right, Column::Shrink::no, 3},
                     {"next", "NEXT FREE BY", Align::left, Column::Shrink::no, 1}};
    for (const PoolUse& use : overview.pools) {
        const GpuPool& pool = use.pool;
        const bool is_free = pool.free.value_or(0) > 0;
        table.rows.push_back(
            {pool.model.empty() ? "GPU" : pool.model,
             fmt::format("{}", fmt::join(pool.queues, ",")),
             {count_text(pool.free), is_free ? Tone::good : Tone::plain},
             count_text(use.mine),
             count_text(of_others(use)),
             {std::to_string(pool.down), pool.down > 0 ? Tone::warning : Tone::plain},
             std::to_string(pool.blocked),
             is_free    ? "now"
             : use.next ? clock_text(*use.next, now)
                        : "?"});
    }
    return table;
}

const OwnJob* job_of(const RunStatus& status, const Overview& overview)
{
    const auto found =
        std::find_if(overview.jobs.begin(), overview.jobs.end(), [&](const OwnJob& own) {
            return status.job && status.job->job == own.job.id;
        });
    return found == overview.jobs.end() ? nullptr : &*found;
}

std::string waiting_text(const RunStatus& status, const Overview& overview, Time now)
{
    std::string text =
        fmt::format("waits: {}", pending_reason_text(status.reason, gpu_totals(status)));
    const OwnJob* job = job_of(status, overview);
    if (job != nullptr && job->ahead) {
        text += *job->ahead == 0
                    ? "; it is the next"
                    : fmt::format("; {} before it",
                                  counted(static_cast<std::uint64_t>(*job->ahead), "job"));
    }
    if (status.expected_start) {
        return text + fmt::format("; Slurm expects it to start {}",
                                  clock_text(*status.expected_start, now));
    }
    if (const std::string start = start_text(status, now); !start.empty()) {
        return text + "; " + start;
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

tui::RunRow row_of(const RunStatus& status, const TopFound& found, Time now)
{
    tui::RunRow row;
    row.id = run_id(status);
    row.plain = status.plain.has_value();
    row.key = row.plain ? row.id : status.key.text();
    row.active = status.state != RunState::ended;
    row.running = status.state == RunState::running;
    row.facts.push_back(state_text(status, found.overview, now));
    if (row.active && status.memory_kills.value_or(0) > 0) {
        row.facts.push_back(fmt::format("the kernel has killed {} of its processes for memory",
                                        *status.memory_kills));
    }
    if (status.run) {
        const Request& request = status.run->request;
        row.name = request.name;
        row.gpus = counted(static_cast<std::uint64_t>(request.gpus.count * request.nodes), "GPU");
        row.saves = row.running && !row.plain; // if it can't save, stop --checkpoint reports it
        if (row.running && status.started_at) {
            const auto time = std::chrono::floor<seconds>(now - *status.started_at);
            row.since = fmt::format("running for {}", describe(std::max(seconds(0), time)));
        }
        row.facts.push_back(
            fmt::format("{}  (in {})", fmt::join(request.program, " "), request.work_dir));
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

/// In order, with a gap where the program restarted from a checkpoint; ends with NaN if the values
/// have become NaN.
tui::Curve curve_of(const std::string& tag, const telemetry::Series& series)
{
    tui::Curve curve{tag, "", {}};
    for (const telemetry::Series::Bucket& bucket : series.buckets()) {
        if (bucket.gap_before) {
            curve.values.emplace_back();
        }
        curve.values.emplace_back((bucket.low.value + bucket.high.value) / 2);
    }
    if (series.not_finite_since()) {
        curve.values.emplace_back(series.last()->value);
    }
    return curve;
}

/// Mean over all GPUs of a sample, in percent; nothing if it is unknown for one of them.
std::optional<double> busy(const Sample& sample)
{
    double sum = 0;
    for (const GpuSample& gpu : sample.gpus) {
        const Reading& reading = gpu[GpuMetric::busy];
        if (!reading.known()) {
            return std::nullopt;
        }
        sum += static_cast<double>(*reading.value()) / row(GpuMetric::busy).scale;
    }
    return sample.gpus.empty() ? std::nullopt
                               : std::optional(sum / static_cast<double>(sample.gpus.size()));
}

std::optional<double> memory(const Sample& sample)
{
    double used = 0, total = 0;
    for (const GpuSample& gpu : sample.gpus) {
        const Reading& of_gpu = gpu[GpuMetric::memory_used];
        const Reading& all = gpu[GpuMetric::memory_total];
        if (!of_gpu.known() || !all.known()) {
            return std::nullopt;
        }
        used += static_cast<double>(*of_gpu.value());
        total += static_cast<double>(*all.value());
    }
    return total > 0 ? std::optional(100 * used / total) : std::nullopt;
}

/// Empty if nothing is known at any time: the facts then give the reason.
template <typename Measure>
tui::Curve curve_of(const std::vector<Sample>& samples, const char* title, const char* unit,
                    const Measure& measure)
{
    tui::Curve curve{title, unit, {}};
    for (const Sample& sample : samples) {
        curve.values.push_back(measure(sample));
    }
    const bool known = std::any_of(curve.values.begin(), curve.values.end(),
                                   [](const auto& value) { return value.has_value(); });
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
    tui::Curve curve{"processors", "", {}};
    bool known = false;
    for (std::size_t i = 1; i < samples.size(); ++i) {
        const Sample& before = samples[counted_from(samples, i)];
        const auto time = std::chrono::duration<double, std::milli>(samples[i].at - before.at);
        curve.values.emplace_back();
        if (time.count() > 0) {
            curve.values.back() = static_cast<double>(*samples[i].run[RunMetric::cpu].value() -
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

/// The first measure of the training whose name contains one of these words.
const std::pair<const std::string, telemetry::Series>*
named(const telemetry::Curves& curves, std::initializer_list<std::string_view> arguments)
{
    for (const auto& curve : curves.by_tag()) {
        if (std::any_of(arguments.begin(), arguments.end(), [&](std::string_view word) {
                return curve.first.find(word) != std::string::npos;
            })) {
            return &curve;
        }
    }
    return nullptr;
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

} // namespace

tui::Picture top_picture(const TopFound& found, Time now)
{
    tui::Picture picture;
    picture.cluster = found.overview.cluster;
    picture.slurm_at = found.overview.at;
    picture.answer = found.overview.at ? free_answer(free_in(found.overview), now) : "";
    if (found.overview.at && !found.overview.whole_at) {
        picture.answer += "; other waiting jobs not known yet";
    }
    picture.trouble = found.overview.silent.empty() ? found.trouble : found.overview.silent;
    picture.gpus = gpu_table(found.overview, now);
    picture.runs = run_table(found.runs, now);
    for (const RunStatus& status : found.runs) {
        picture.rows.push_back(row_of(status, found, now));
    }
    return picture;
}

tui::Detail top_detail(const TopCloser& closer, Time now)
{
    tui::Detail detail;
    detail.key = closer.run.key.text();
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
    const telemetry::Curves& curves = closer.training.training.curves;
    if (const auto* loss = telemetry::main_loss(curves)) {
        detail.curves.push_back(curve_of(loss->first, loss->second));
    }
    for (auto& curve :
         {curve_of(closer.samples, "GPUs busy", "%", busy),
          curve_of(closer.samples, "GPU memory", "%", memory), cores_of(closer.samples),
          curve_of(closer.samples, "memory", "GiB", main_memory)}) {
        if (!curve.values.empty()) {
            detail.curves.push_back(curve);
        }
    }
    for (const auto* measure : {named(curves, {"acc"}), named(curves, {"learning_rate", "lr"})}) {
        if (measure != nullptr) {
            detail.curves.push_back(curve_of(measure->first, measure->second));
        }
    }
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
                          {"next_free_at", use.next}}));
    }
    Json::Elements runs;
    for (const RunStatus& status : found.runs) {
        const OwnJob* job = job_of(status, found.overview);
        runs.push_back(Json::object({{"run", run_json(status, now)},
                                     {"jobs_ahead", job == nullptr ? Json() : Json(job->ahead)}}));
    }
    return {{"cluster", found.overview.cluster},
            {"asked_at", found.overview.at},
            {"slurm_silent", found.overview.silent.empty() ? Json() : Json(found.overview.silent)},
            {"pools", Json::array(std::move(pools))},
            {"runs", Json::array(std::move(runs))}};
}

} // namespace gpuq::cli
