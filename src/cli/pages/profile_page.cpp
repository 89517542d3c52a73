// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/pages/profile_page.h"

#include "cli/pages/profile_charts.h"
#include "cli/render/run_table.h"
#include "core/quote.h"
#include "report/chart.h"
#include "report/ending_text.h"
#include "report/html.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

namespace gpuq::cli {
namespace {

using report::Chart;
using report::html_text;
using report::Point;
using telemetry::Measure;
using telemetry::Measured;
using telemetry::Phase;
using telemetry::Profile;
using telemetry::Track;

/// More curves of one measure are summarised: GPUs usually do the same, and hide one another.
constexpr std::size_t k_most_tracks = 8;

using Course = std::vector<std::optional<double>>;

/// A curve with its name.
struct Curve {
    std::string name;
    Course course;
};

const Course& course_of(const Track& track, Measure measure)
{
    return track.course[static_cast<std::size_t>(measure)];
}

std::vector<Point> points_of(const Course& course, const Profile& profile)
{
    const double step = seconds(profile.step);
    std::vector<Point> points;
    for (std::size_t i = 0; i < course.size(); ++i) {
        points.push_back({(static_cast<double>(i) + 0.5) * step, course[i].value_or(k_gap)});
    }
    return points;
}

/// The part of the run that is missing from a curve, with the reason.
std::string gap_text(const WholeProfile& whole, Measure measure)
{
    const double known = known_part(whole, measure);
    const Measured& values = (*whole.profile)[measure];
    if (known >= 0.995 || known <= 0) {
        return "";
    }
    // Time in which measuring failed, compared with time in which it was not attempted.
    const double in_vain = values.known / values.known_share() - values.known;
    const double not_measured = values.known / known - values.known - in_vain;
    return fmt::format("Gaps: unknown {:.0f} % of the time ({}).", 100 * (1 - known),
                       in_vain >= not_measured ? describe(values.why()) : "no samples");
}

std::string in_figures(const WholeProfile& whole, Measure measure)
{
    const Measured& values = (*whole.profile)[measure];
    const auto& row = telemetry::row(measure);
    return fmt::format("{}: {} {} on average, {} {} at most", row.title,
                       value_text(measure, values.mean()), row.unit,
                       value_text(measure, values.most), row.unit);
}

std::string track_name(const Track& track, bool is_gpu, bool several_nodes)
{
    const std::string node =
        track.nodes.size() == 1 ? track.nodes.front() : fmt::format("node {}", track.node + 1);
    if (!is_gpu) {
        return node;
    }
    return several_nodes ? fmt::format("{} GPU {}", node, track.gpu)
                         : fmt::format("GPU {}", track.gpu);
}

/// The mean, the lowest and the highest of many curves, which would hide one another.
std::vector<Curve> summary_of(const std::vector<Track>& tracks, Measure measure,
                              const std::string& what)
{
    std::vector<Curve> curves = {{"mean of " + what, {}}, {"lowest", {}}, {"highest", {}}};
    for (std::size_t step = 0; step < course_of(tracks.front(), measure).size(); ++step) {
        double sum = 0, count = 0;
        std::optional<double> low, high;
        for (const Track& track : tracks) {
            if (const auto& value = course_of(track, measure)[step]) {
                sum += *value;
                ++count;
                low = std::min(low.value_or(*value), *value);
                high = std::max(high.value_or(*value), *value);
            }
        }
        curves[0].course.push_back(count > 0 ? std::optional(sum / count) : std::nullopt);
        curves[1].course.push_back(low);
        curves[2].course.push_back(high);
    }
    return curves;
}

std::vector<Curve> curves_of(const Profile& profile, Measure measure)
{
    const bool is_gpu = static_cast<std::size_t>(measure) < telemetry::k_gpu_measures;
    const auto& tracks = is_gpu ? profile.gpus : profile.nodes;
    if (tracks.size() > k_most_tracks) {
        return summary_of(tracks, measure,
                          fmt::format("{} {}", tracks.size(), is_gpu ? "GPUs" : "nodes"));
    }
    std::vector<Curve> curves;
    for (const Track& track : tracks) {
        curves.push_back(
            {track_name(track, is_gpu, profile.nodes.size() > 1), course_of(track, measure)});
    }
    return curves;
}

/// The sum over all GPUs or nodes; nothing at times for which one of them is unknown.
Course sum_of(const Profile& profile, Measure measure)
{
    const bool is_gpu = static_cast<std::size_t>(measure) < telemetry::k_gpu_measures;
    const auto& tracks = is_gpu ? profile.gpus : profile.nodes;
    Course sum = course_of(tracks.front(), measure);
    for (std::size_t i = 1; i < tracks.size(); ++i) {
        const Course& one = course_of(tracks[i], measure);
        for (std::size_t step = 0; step < sum.size(); ++step) {
            sum[step] =
                sum[step] && one[step] ? std::optional(*sum[step] + *one[step]) : std::nullopt;
        }
    }
    return sum;
}

double highest(const std::vector<Curve>& curves)
{
    double most = 0;
    for (const Curve& curve : curves) {
        for (const auto& value : curve.course) {
            most = std::max(most, value.value_or(0));
        }
    }
    return most;
}

std::string drawn(const WholeProfile& whole, Chart chart, const std::vector<Curve>& curves,
                  const std::string& caption)
{
    std::vector<std::string> names;
    for (const Curve& curve : curves) {
        names.push_back(curve.name);
        chart.curves.push_back(points_of(curve.course, *whole.profile));
    }
    return figure(chart, names, caption);
}

/// A chart of one measure, with a curve for each GPU or node.
std::string measure_figure(const WholeProfile& whole, Measure measure, const std::string& title,
                           std::optional<report::Tick> level = {}, double at_least = 0)
{
    const Profile& profile = *whole.profile;
    if (profile[measure].known <= 0) {
        return "";
    }
    const auto curves = curves_of(profile, measure);
    const auto& row = telemetry::row(measure);
    Chart chart = chart_over_time(profile, "m" + std::to_string(static_cast<int>(measure)), title);
    chart.description = in_figures(whole, measure) + ". " + gap_text(whole, measure);
    chart.level = level && level->at > 0 ? level : std::nullopt;
    chart.y = report::axis_from_zero(
        std::string(row.unit),
        std::max({highest(curves), at_least, chart.level ? chart.level->at : 0.0}));
    return drawn(whole, chart, curves,
                 in_figures(whole, measure) + ". " + gap_text(whole, measure));
}

/// A chart of a quantity in two directions, summed over all GPUs or nodes.
std::string transfer_figure(const WholeProfile& whole, Measure first, Measure second,
                            const std::string& title, const std::string& what)
{
    const Profile& profile = *whole.profile;
    std::vector<Curve> curves;
    std::string caption = what;
    for (const Measure measure : {first, second}) {
        if (profile[measure].known > 0) {
            curves.push_back(
                {std::string(telemetry::row(measure).title), sum_of(profile, measure)});
        }
    }
    if (curves.empty()) {
        return "";
    }
    Chart chart = chart_over_time(profile, "m" + std::to_string(static_cast<int>(first)), title);
    chart.y = report::axis_from_zero("MiB/s", highest(curves));
    chart.description = in_figures(whole, first) + "; " + in_figures(whole, second) + ".";
    caption += " " + gap_text(whole, first);
    return drawn(whole, chart, curves, caption);
}

std::optional<report::Tick> gpu_memory_level(const Profile& profile)
{
    std::optional<double> total;
    for (const Track& gpu : profile.gpus) {
        if (!gpu.memory_total || (total && std::abs(*total - *gpu.memory_total) > 0.1)) {
            return std::nullopt; // sizes differ: no common line
        }
        total = gpu.memory_total;
    }
    return total ? std::optional(report::Tick{*total, fmt::format("{:.1f} GiB in all", *total)})
                 : std::nullopt;
}

std::optional<report::Tick> cores_level(const WholeProfile& whole)
{
    std::optional<double> cores;
    for (const Track& node : whole.profile->nodes) {
        cores = node.cores ? std::max(cores.value_or(0), *node.cores) : cores;
    }
    if (!cores && whole.status.run && whole.status.run->request.cpus) {
        cores = *whole.status.run->request.cpus;
    }
    return cores ? std::optional(report::Tick{*cores, fmt::format("the job's {:g}", *cores)})
                 : std::nullopt;
}

std::optional<report::Tick> ram_level(const WholeProfile& whole)
{
    const auto mib = whole.status.run ? whole.status.run->request.memory_mib : std::nullopt;
    if (mib.value_or(0) == 0) {
        return std::nullopt;
    }
    const double gib = static_cast<double>(*mib) / 1024;
    return report::Tick{gib, fmt::format("{:g} GiB requested", gib)};
}

/// Explains the notches of the charts.
std::string saves_text(const Profile& profile)
{
    const bool saves = std::any_of(profile.links.begin(), profile.links.end(),
                                   [](const auto& link) { return !link.saves.empty(); });
    return saves ? "Short lines below the charts mark checkpoints." : "";
}

// Phases.

constexpr std::array k_stacked = {Phase::busy, Phase::waiting, Phase::saving, Phase::start_up,
                                  Phase::other_idle};
static_assert(k_stacked.size() == report::k_most_parts);

std::string phases_figure(const WholeProfile& whole)
{
    const Profile& profile = *whole.profile;
    const SplitTime time = split(whole);
    if (time.busy + time.idle == std::chrono::seconds(0)) {
        return "";
    }
    Chart chart = chart_over_time(profile, "phases", "Where the GPU time went");
    chart.y = report::axis_from_zero("%", 100);
    const double step = seconds(profile.step);
    for (std::size_t i = 0; i < profile.phase_course.size(); ++i) {
        const auto& times = profile.phase_course[i];
        double all = 0;
        for (const auto part : times) {
            all += static_cast<double>(part.count());
        }
        report::Block block{step * static_cast<double>(i), step * static_cast<double>(i + 1), {}};
        for (const Phase phase : k_stacked) {
            const double part = static_cast<double>(times[static_cast<std::size_t>(phase)].count());
            block.parts.push_back(all > 0 ? 100 * part / all : 0);
        }
        chart.blocks.push_back(std::move(block));
    }
    std::vector<std::string> names;
    const auto name = [&](Phase phase) {
        const auto part = time.phases[static_cast<std::size_t>(phase)];
        return fmt::format("{}: {:.1f} %", telemetry::row(phase).title,
                           100.0 * double(part.count()) / double(time.all.count()));
    };
    std::vector<std::string> reported;
    for (const Phase phase : k_stacked) {
        const bool any = time.phases[static_cast<std::size_t>(phase)].count() > 0;
        names.push_back(any ? name(phase) : "");
    }
    names.push_back(name(Phase::unknown));
    std::copy_if(names.begin(), names.end(), std::back_inserter(reported),
                 [](const std::string& one) { return !one.empty(); });
    chart.description = fmt::format("{}", fmt::join(reported, "; "));
    return figure(chart, names, "Blank is unknown. " + saves_text(profile));
}

// The page.

std::string key_figure(const std::string& what, const std::string& now, const std::string& more)
{
    return fmt::format("<div><dt>{}</dt><dd class=\"now\">{}</dd><dd class=\"before\">{}"
                       "</dd></div>\n",
                       html_text(what), html_text(now), html_text(more));
}

std::string key_figures(const WholeProfile& whole)
{
    const SplitTime time = split(whole);
    const auto known = time.busy + time.idle;
    const auto percent = [](std::chrono::seconds part, std::chrono::seconds all) {
        return fmt::format("{:.0f} %", 100.0 * double(part.count()) / double(all.count()));
    };
    std::string figures;
    const Profile& profile = *whole.profile;
    if (time.all.count() > 0 && known.count() == 0) {
        figures += key_figure("how busy the GPU was", "unknown",
                              std::string(describe(profile[Measure::busy].why())));
    } else if (time.all.count() > 0) {
        figures += key_figure("of the known GPU time the GPU was busy", percent(time.busy, known),
                              fmt::format("of {} GPU time {} is unknown", describe(time.all),
                                          percent(time.unknown, time.all)));
        const auto waiting = time.phases[static_cast<std::size_t>(Phase::waiting)];
        figures += key_figure("of it the GPU waited for data", percent(waiting, known),
                              "idle while CPUs or the disk worked");
    }
    if (const Measured& memory = profile[Measure::memory_used]; memory.known > 0) {
        const auto level = gpu_memory_level(profile);
        figures += key_figure("of GPU memory were used at most",
                              value_text(Measure::memory_used, memory.most) + " GiB",
                              level ? fmt::format("of {:.1f} GiB", level->at) : "of one GPU");
    }
    if (const Measured& cpu = profile[Measure::cpu]; cpu.known > 0) {
        const auto level = cores_level(whole);
        figures +=
            key_figure("CPU cores were used on average", value_text(Measure::cpu, cpu.mean()),
                       level ? fmt::format("of {:g} on a node", level->at) : "on a node");
    }
    return figures.empty() ? "" : "<dl class=\"key four\">\n" + figures + "</dl>\n";
}

std::string head(const WholeProfile& whole, Time now)
{
    const RunStatus& status = whole.status;
    std::string text = fmt::format("<h1>Run {}</h1>\n", html_text(run_title(status)));
    if (status.run) {
        text += fmt::format("<p><code>{}</code></p>\n",
                            html_text(shell_command(status.run->request.program)));
    }
    const std::string state = status.state == RunState::ended && status.ending && status.run
                                  ? ending_text(*status.ending, status.run->request)
                                  : std::string(word(status.state));
    return text + fmt::format("<p class=\"soft\">{}; {}</p>\n", html_text(life_text(whole, now)),
                              html_text(state));
}

std::string paragraphs(const std::vector<std::string>& texts)
{
    std::string all;
    for (const std::string& text : texts) {
        all += fmt::format("<p class=\"soft\">{}</p>\n", html_text(text));
    }
    return all;
}

std::string advice(const WholeProfile& whole)
{
    const auto all = advice_of(whole);
    if (all.empty()) {
        return "";
    }
    std::string text = "<h2>Advice</h2>\n<ul class=\"advice\">\n";
    for (const auto& one : all) {
        text += fmt::format("<li>{}</li>\n", html_text(one.text));
    }
    return text + "</ul>\n";
}

std::string figures(const WholeProfile& whole)
{
    const Profile& profile = *whole.profile;
    return measure_figure(whole, Measure::busy, "GPU busy", {}, 100) +
           measure_figure(whole, Measure::memory_used, "GPU memory", gpu_memory_level(profile)) +
           measure_figure(whole, Measure::sm_active, "GPU cores active", {}, 100) +
           measure_figure(whole, Measure::power, "GPU power") +
           measure_figure(whole, Measure::temperature, "GPU temperature") +
           measure_figure(whole, Measure::cpu, "CPU", cores_level(whole)) +
           measure_figure(whole, Measure::ram, "RAM", ram_level(whole)) +
           transfer_figure(whole, Measure::pcie_rx, Measure::pcie_tx, "Transfers by PCIe",
                           "All GPUs together.") +
           transfer_figure(whole, Measure::nvlink_rx, Measure::nvlink_tx, "Transfers by NVLink",
                           "All GPUs together.") +
           transfer_figure(whole, Measure::disk_read, Measure::disk_written, "Disk",
                           "Local disks, all nodes together.") +
           transfer_figure(whole, Measure::network_rx, Measure::network_tx, "Network",
                           "Whole nodes, other jobs on them too, all nodes together.");
}

std::string tables(const WholeProfile& whole, Time now)
{
    std::string text;
    if (const report::Table table = measures_table(whole); !table.rows.empty()) {
        text += "<h2>All figures</h2>\n<div class=\"wide-table\">" +
                report::html_table(table, "Per GPU or node. KNOWN: share of the run's time.") +
                "</div>\n";
    }
    text += paragraphs(unknown_lines(whole));
    if (const report::Table table = gpus_table(whole); !table.rows.empty()) {
        text += "<h2>GPU by GPU</h2>\n<div class=\"wide-table\">" +
                report::html_table(table, "Means; memory and temperature: the highest.") +
                "</div>\n";
    }
    if (whole.profile && whole.profile->links.size() > 1) {
        text += "<h2>Links</h2>\n<div class=\"wide-table\">" +
                report::html_table(links_table(whole, now), "Between links the run waited.") +
                "</div>\n";
    }
    return text;
}

} // namespace

std::string profile_page(const WholeProfile& whole, Time now)
{
    std::string body = head(whole, now);
    if (const std::string nothing = nothing_text(whole); !nothing.empty()) {
        body += fmt::format("<p>{}.</p>\n", html_text(nothing));
    }
    if (whole.profile && whole.profile->has_samples()) {
        body += key_figures(whole) + advice(whole) + phases_figure(whole);
    }
    body += loss_figure(whole);
    if (whole.profile && whole.profile->has_samples()) {
        body += figures(whole) + tables(whole, now);
    }
    body += fmt::format("<footer>\n<p>Made on {} by gpuq {} profile; see man gpuq-profile for the "
                        "terms. A gap in a curve is unknown, never 0. {}</p>\n</footer>\n",
                        html_text(moment_text(now, Time())), GPUQ_VERSION,
                        whole.profile ? saves_text(*whole.profile) : "");
    return report::html_page("Run " + run_title(whole.status), body);
}

} // namespace gpuq::cli
