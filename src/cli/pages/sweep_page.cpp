// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/pages/sweep_page.h"

#include "report/chart.h"
#include "report/ending_text.h"
#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace gpuq::cli {
namespace {

using report::Chart;
using report::html_text;
using sweeps::Try;

constexpr std::size_t k_most_rows = 1000;

/// The best values of the tries that have ended, in the order of their ends.
std::vector<double> values_by_end(const SweepStatus& status)
{
    std::vector<const Try*> ended;
    for (const Try& entry : status.tries) {
        if (entry.state == Try::State::ended && entry.reached.best) {
            ended.push_back(&entry);
        }
    }
    std::stable_sort(ended.begin(), ended.end(), [](const Try* one, const Try* other) {
        return one->end->at < other->end->at;
    });
    std::vector<double> values;
    std::transform(ended.begin(), ended.end(), std::back_inserter(values),
                   [](const Try* entry) { return *entry->reached.best; });
    return values;
}

/// The value of each try, and the best one until then.
std::string values_figure(const SweepStatus& status)
{
    const std::vector<double> values = values_by_end(status);
    if (values.size() < 2) {
        return "";
    }
    const std::string name = name_of(status.sweep.metric);
    Chart chart;
    chart.id = "values";
    chart.title = name;
    chart.lines = Chart::Lines::several;
    chart.curves.resize(2);
    double best = values.front();
    for (std::size_t i = 0; i < values.size(); ++i) {
        best = is_better(status.sweep.metric, values[i], best) ? values[i] : best;
        const auto x = static_cast<double>(i + 1);
        chart.curves[0].push_back({x, values[i]});
        chart.curves[1].push_back({x, best});
    }
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    chart.x = report::axis_from_zero("tries that have ended", static_cast<double>(values.size()));
    chart.y = report::axis_between(name, *low, *high);
    chart.description =
        fmt::format("The best {} of {} tries is {:.5g}.", name, values.size(), best);
    return fmt::format(
        "<h2>{}</h2>\n<figure>\n{}{}</figure>\n", html_text(name),
        report::html_legend({"each try, in the order of their ends", "best until then"},
                            Chart::Lines::several),
        report::html_chart(chart));
}

} // namespace

std::string sweep_page(const SweepStatus& status, Time now)
{
    const std::string title = "Sweep " + status.sweep.name;
    std::string body = fmt::format("<h1>{}</h1>\n<p>{}: {}</p>\n", html_text(title),
                                   word(status.state), html_text(sweep_summary(status)));
    for (const std::string& note : {missing_metric_text(status), status.proposal_failure}) {
        body += note.empty() ? "" : fmt::format("<p class=\"soft\">{}</p>\n", html_text(note));
    }
    body += values_figure(status);
    const std::string caption =
        status.tries.size() > k_most_rows
            ? fmt::format("The first {} of {}.", k_most_rows, status.tries.size())
            : "";
    body += fmt::format("<h2>Tries</h2>\n<div class=\"wide-table\">{}</div>\n",
                        report::html_table(tries_table(status, k_most_rows, now), caption));
    body +=
        fmt::format("<footer>\n<p>Made on {} by gpuq {} show --html; see man gpuq-sweep for the "
                    "terms.</p>\n</footer>\n",
                    html_text(moment_text(now, Time())), GPUQ_VERSION);
    return report::html_page(title, body);
}

} // namespace gpuq::cli
