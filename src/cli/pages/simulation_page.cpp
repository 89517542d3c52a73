// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/pages/simulation_page.h"

#include "cli/render/simulation_text.h"
#include "report/chart.h"
#include "report/ending_text.h"
#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace gpuq::cli {
namespace {

using report::Axis;
using report::Chart;
using report::html_text;
using report::Point;
using sim::Seconds;

std::string percent(double part)
{
    return fmt::format("{:.1f} %", 100 * part);
}

std::string wait_text(Seconds wait)
{
    return wait == Seconds{0} ? "no time" : describe(wait);
}

/// One of the most important figures, new and old.
std::string key_figure(const std::string& what, const std::string& now, const std::string& before,
                       const std::string& whose)
{
    return fmt::format("<div><dt>{}</dt><dd class=\"now\">{}</dd><dd class=\"before\">{}: "
                       "{}</dd></div>\n",
                       html_text(what), html_text(now), html_text(whose), html_text(before));
}

std::string key_figures(const Simulated& old, const Simulated& made)
{
    const auto long_wait = [](const Simulated& one) {
        return wait_text(Seconds{static_cast<std::int64_t>(one.measures.long_runs.mean_in_all)});
    };
    return "<dl class=\"key\">\n" +
           key_figure("95th percentile of the wait of short runs",
                      wait_text(made.measures.short_runs.p95),
                      wait_text(old.measures.short_runs.p95), old.name) +
           key_figure("the average wait of a longer run", long_wait(made), long_wait(old),
                      old.name) +
           key_figure("of the GPU time is used", percent(made.measures.use),
                      percent(old.measures.use), old.name) +
           "</dl>\n";
}

/// `old: TEXT. made: TEXT.`
template <typename Text>
std::string of_both(const std::vector<Simulated>& all, Text text)
{
    std::string result;
    for (const Simulated& one : all) {
        result += fmt::format("{}{}: {}.", result.empty() ? "" : " ", one.name, text(one));
    }
    return result;
}

// The distribution of waits.

constexpr double k_shortest = 10; ///< seconds; shorter waits are at the left end

Axis wait_axis(double longest)
{
    constexpr std::array<std::pair<double, const char*>, 9> k_ticks = {{{10, "\u2264 10 s"},
                                                                        {60, "1 min"},
                                                                        {600, "10 min"},
                                                                        {3600, "1 h"},
                                                                        {6 * 3600, "6 h"},
                                                                        {86400, "1 day"},
                                                                        {7 * 86400, "1 week"},
                                                                        {30 * 86400, "30 days"},
                                                                        {365 * 86400, "1 year"}}};
    Axis axis;
    axis.title = "wait until the first start (logarithmic)";
    axis.logarithmic = true;
    axis.low = k_shortest;
    axis.high = std::max(longest, 3 * 3600.0);
    for (const auto& [at, label] : k_ticks) {
        if (at <= axis.high) {
            axis.ticks.push_back({at, label});
        }
    }
    return axis;
}

std::vector<Point> distribution(const std::vector<Seconds>& waits, const Axis& axis)
{
    constexpr int k_steps = 240;
    std::vector<Point> points;
    for (int i = 0; i <= k_steps; ++i) {
        const double wait = axis.low * std::pow(axis.high / axis.low, double(i) / k_steps);
        points.push_back(
            {wait, 100 * sim::share_within(waits, Seconds{static_cast<std::int64_t>(wait + 0.5)})});
    }
    return points;
}

/// Starts at a round number below the curves: where most runs start at once, only the rest matters.
Axis share_axis(const std::vector<std::vector<Point>>& curves)
{
    double least = 80;
    for (const auto& points : curves) {
        least = std::min(least, points.front().y);
    }
    Axis axis;
    axis.title = "% of the short runs that have started";
    axis.low = least < 50 ? 0 : std::floor(least / 10) * 10;
    axis.high = 100;
    const int step = axis.low >= 80 ? 5 : axis.low >= 50 ? 10 : 20;
    for (int share = static_cast<int>(axis.low); share <= 100; share += step) {
        axis.ticks.push_back({static_cast<double>(share), std::to_string(share)});
    }
    return axis;
}

Chart waits_chart(const std::vector<Simulated>& all)
{
    double longest = 0;
    for (const Simulated& one : all) {
        const auto& waits = one.curves.short_waits;
        longest = std::max(longest, waits.empty() ? 0 : double(waits.back().count()));
    }
    Chart chart;
    chart.id = "waits";
    chart.title = "How soon short runs start";
    chart.description = of_both(all, [](const Simulated& one) {
        const sim::Waits& waits = one.measures.short_runs;
        return !waits.within_target
                   ? std::string("no short run starts")
                   : fmt::format("half of the short runs start within {}, 95 % within {}, the last "
                                 "after {}; {} start within 2 h",
                                 wait_text(waits.p50), wait_text(waits.p95), wait_text(waits.max),
                                 percent(*waits.within_target));
    });
    chart.x = wait_axis(longest);
    for (const Simulated& one : all) {
        chart.curves.push_back(distribution(one.curves.short_waits, chart.x));
    }
    chart.y = share_axis(chart.curves);
    chart.upright = report::Tick{2 * 3600, "2 h"};
    return chart;
}

// Changes over time.

/// In days, or in hours for a short trace.
Axis time_axis(Seconds span)
{
    using namespace std::chrono_literals;
    const bool days = span > 72h;
    const double unit = days ? 86400 : 3600;
    const double length = std::max(double(span.count()) / unit, 1.0);
    Axis axis =
        report::axis_from_zero(fmt::format("{} since the first run", days ? "days" : "hours"),
                               length * 0.6); // about eight ticks
    const double step = axis.ticks[1].at;
    axis.high = length;
    axis.ticks.clear();
    for (double at = 0; at <= length; at += step) {
        axis.ticks.push_back({at, fmt::format("{:g}", at)});
    }
    return axis;
}

std::vector<Point> over_time(const std::vector<double>& values, Seconds part, Seconds span)
{
    using namespace std::chrono_literals;
    const double unit = span > 72h ? 86400 : 3600;
    std::vector<Point> points;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double begin = double(part.count()) * double(i);
        const double end = std::min(begin + double(part.count()), double(span.count()));
        points.push_back({(begin + end) / 2 / unit, values[i]});
    }
    return points;
}

double average(const std::vector<double>& values)
{
    double sum = 0;
    for (const double value : values) {
        sum += value;
    }
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double highest(const std::vector<double>& values)
{
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

using Levels = std::vector<double> sim::Curves::*;

Chart time_chart(const std::vector<Simulated>& all, Seconds span, Levels levels)
{
    Chart chart;
    chart.x = time_axis(span);
    double most = 1;
    for (const Simulated& one : all) {
        const auto& values = one.curves.*levels;
        chart.curves.push_back(over_time(values, one.curves.part, span));
        most = std::max(most, highest(values));
    }
    chart.y = report::axis_from_zero("", most);
    chart.description = of_both(all, [&](const Simulated& one) {
        const auto& values = one.curves.*levels;
        return fmt::format("{:.1f} on average, {:.1f} at most", average(values), highest(values));
    });
    return chart;
}

Chart waiting_chart(const std::vector<Simulated>& all, Seconds span)
{
    Chart chart = time_chart(all, span, &sim::Curves::waiting);
    chart.id = "waiting";
    chart.title = "Runs that wait";
    chart.y.title = "runs that wait";
    return chart;
}

Chart use_chart(const std::vector<Simulated>& all, Seconds span)
{
    Chart chart = time_chart(all, span, &sim::Curves::used);
    chart.id = "use";
    chart.title = "GPUs in use";
    int most = 0;
    bool same = true;
    for (const Simulated& one : all) {
        most = std::max(most, one.curves.gpus);
        same = same && one.curves.gpus == all.front().curves.gpus;
    }
    chart.y = report::axis_from_zero("GPUs in use", most);
    if (same) {
        chart.level = report::Tick{double(most), fmt::format("all {} GPUs", most)};
    }
    return chart;
}

std::string figure(const Chart& chart, const std::vector<Simulated>& all,
                   const std::string& caption)
{
    std::vector<std::string> names;
    for (const Simulated& one : all) {
        names.push_back(one.name);
    }
    return fmt::format("<h2>{}</h2>\n<figure>\n<figcaption>{}</figcaption>\n{}{}</figure>\n",
                       html_text(chart.title), html_text(caption), report::html_legend(names),
                       report::html_chart(chart));
}

std::string caption_over_time(const std::string& what, Seconds part)
{
    return fmt::format("{}, each point the average of {}.", what, describe(part));
}

std::string head(const std::vector<Simulated>& all, const Workload& workload)
{
    const std::string left_out = left_out_text(workload.name, workload.left_out());
    return fmt::format(
        "<h1>{} <span class=\"soft\">against {}</span></h1>\n"
        "<p class=\"soft\">Simulated outcome of {} runs in {} ({}), on {} GPUs, in a "
        "simulation of Slurm&#39;s scheduling.{}</p>\n",
        html_text(all[1].name), html_text(all[0].name), workload.trace.jobs.size(),
        html_text(describe(workload.span())), html_text(workload.name), all[1].curves.gpus,
        left_out.empty() ? "" : " " + html_text(left_out));
}

std::string foot(const Workload& workload)
{
    return fmt::format(
        "<footer>\n<p>A wait is the time from the submission of a run to its first start; short "
        "runs take at most 2 h. Times that the trace does not state are taken to be stated {}. "
        "Curves end with the last submission.</p>\n"
        "<p>Made by gpuq {} policy simulate; see man gpuq-policy.</p>\n</footer>\n",
        workload.user_model.declared == sim::Declared::honestly
            ? "honestly: the time the run needs, rounded up to ten minutes"
            : "rarely: by 1.4 % of the short runs",
        GPUQ_VERSION);
}

} // namespace

std::string simulation_page(const std::vector<Simulated>& all, const Workload& workload)
{
    const Seconds part = all[1].curves.part;
    std::string body = head(all, workload) + key_figures(all[0], all[1]);
    const Chart waits = waits_chart(all);
    body +=
        figure(waits, all,
               "The higher a curve, the more of the runs of at most 2 h have started after "
               "the time below it." +
                   (waits.y.low > 0 ? fmt::format(" The scale begins at {} %.", waits.y.low) : ""));
    body += figure(waiting_chart(all, workload.span()), all,
                   caption_over_time("Runs and further links of longer runs", part));
    body +=
        figure(use_chart(all, workload.span()), all, caption_over_time("GPUs with a run", part));
    body += "<h2>All figures</h2>\n" +
            report::html_table(simulation_table(all), "As printed by gpuq policy simulate.") +
            "<h2>By partition</h2>\n" +
            report::html_table(partitions_table(all), "Where the runs started under " +
                                                          all.back().name +
                                                          ", and how long they waited for it.");
    if (const report::Table users = users_table(all); !users.rows.empty()) {
        body += "<h2>Who waits longest</h2>\n" +
                report::html_table(users, "Users, by the 95th percentile of their runs' waits.");
    }
    return report::html_page(fmt::format("{} against {}", all[1].name, all[0].name),
                             body + foot(workload));
}

} // namespace gpuq::cli
