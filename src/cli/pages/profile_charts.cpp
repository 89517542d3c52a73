// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/pages/profile_charts.h"

#include "core/lower_case.h"
#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace gpuq::cli {
namespace {

using report::Chart;
using report::html_text;
using report::Point;
using telemetry::Profile;
using telemetry::Series;

/// Marks the beginning of each link, if there are several, and the checkpoints.
void mark_links(Chart& chart, const Profile& profile)
{
    for (const auto& link : profile.links) {
        if (profile.links.size() > 1) {
            chart.boundaries.push_back(
                {seconds(link.from - profile.from), fmt::format("link {}", link.link.value)});
        }
        for (const Time save : link.saves) {
            chart.notches.push_back(seconds(save - profile.from));
        }
    }
}

/// Measures with `loss` in their names, the main one first.
std::vector<std::pair<std::string, const Series*>> losses(const telemetry::Curves& curves)
{
    constexpr std::size_t k_most = 4;
    std::vector<std::pair<std::string, const Series*>> found;
    const auto* const main = telemetry::main_loss(curves);
    if (main == nullptr) {
        return found;
    }
    found.emplace_back(main->first, &main->second);
    for (const auto& [tag, series] : curves.by_tag()) {
        if (found.size() < k_most && tag != main->first &&
            lower_case(tag).find("loss") != std::string::npos) {
            found.emplace_back(tag, &series);
        }
    }
    return found;
}

/// Whether all points have a time, so that they can be shown by time, else by step.
bool have_times(const std::vector<std::pair<std::string, const Series*>>& all)
{
    return std::all_of(all.begin(), all.end(), [](const auto& one) {
        const auto& buckets = one.second->buckets();
        return std::all_of(buckets.begin(), buckets.end(),
                           [](const auto& bucket) { return bucket.low.at && bucket.high.at; });
    });
}

std::vector<Point> points_of(const Series& series, bool by_time, Time from)
{
    std::vector<Point> points;
    for (const Series::Bucket& bucket : series.buckets()) {
        std::array both = {&bucket.low, &bucket.high};
        if (both[1]->step < both[0]->step) {
            std::swap(both[0], both[1]);
        }
        if (bucket.gap_before && !points.empty()) {
            points.push_back({points.back().x, k_gap});
        }
        for (const telemetry::Point* point : both) {
            points.push_back(
                {by_time ? seconds(*point->at - from) : double(point->step), point->value});
            if (bucket.points == 1) {
                break;
            }
        }
    }
    return points;
}

/// Inserts gaps so that no line crosses the time between two links.
std::vector<Point> parted(const std::vector<Point>& points, const Chart& chart)
{
    std::vector<Point> all;
    for (const Point& point : points) {
        const bool parts =
            !all.empty() &&
            std::any_of(chart.boundaries.begin(), chart.boundaries.end(), [&](const auto& one) {
                return all.back().x < one.at && one.at <= point.x;
            });
        if (parts) {
            all.push_back({point.x, k_gap});
        }
        all.push_back(point);
    }
    return all;
}

} // namespace

Chart chart_over_time(const Profile& profile, std::string id, std::string title)
{
    Chart chart;
    chart.id = std::move(id);
    chart.title = std::move(title);
    chart.lines = Chart::Lines::several;
    chart.size = Chart::Size::low;
    chart.x =
        report::axis_of_time("time since the start of the run", seconds(profile.to - profile.from));
    mark_links(chart, profile);
    return chart;
}

std::string figure(const Chart& chart, const std::vector<std::string>& names,
                   const std::string& caption)
{
    const std::string legend = !chart.blocks.empty() ? report::html_parts_legend(names)
                               : names.size() > 1
                                   ? report::html_legend(names, Chart::Lines::several)
                                   : "";
    return fmt::format(
        "<h2>{}</h2>\n<figure>\n{}{}{}</figure>\n", html_text(chart.title),
        caption.empty() ? "" : fmt::format("<figcaption>{}</figcaption>\n", html_text(caption)),
        legend, report::html_chart(chart));
}

std::string loss_figure(const WholeProfile& whole)
{
    const auto& training = whole.training.training;
    const auto all = losses(training.curves);
    if (all.empty() || all.front().second->buckets().empty()) {
        return "";
    }
    const bool by_time = whole.profile && have_times(all);
    Chart chart;
    if (by_time) {
        chart = chart_over_time(*whole.profile, "loss", "Loss");
    } else {
        chart.id = "loss";
        chart.title = "Loss";
        chart.lines = Chart::Lines::several;
        chart.size = Chart::Size::low;
    }
    std::vector<std::string> names;
    double low = std::numeric_limits<double>::infinity(), high = -low, last = 1;
    for (const auto& [tag, series] : all) {
        names.push_back(tag);
        chart.curves.push_back(
            parted(points_of(*series, by_time, by_time ? whole.profile->from : Time()), chart));
        for (const Point& point : chart.curves.back()) {
            if (std::isfinite(point.y)) {
                low = std::min(low, point.y);
                high = std::max(high, point.y);
                last = std::max(last, point.x);
            }
        }
    }
    if (!by_time) {
        chart.x = report::axis_from_zero("step", last);
        chart.x.high = last;
        std::erase_if(chart.x.ticks, [&](const report::Tick& tick) { return tick.at > last; });
    }
    chart.y = report::axis_between(names.size() == 1 ? names.front() : "loss", low, high);
    const auto& newest = *all.front().second->last();
    chart.description =
        fmt::format("{} is {:.4g} at step {}, in {}.", all.front().first, newest.value, newest.step,
                    training.source.empty() ? "the output" : training.source);
    return figure(chart, names, chart.description);
}

} // namespace gpuq::cli
