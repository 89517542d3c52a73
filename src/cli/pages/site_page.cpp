// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/pages/site_page.h"

#include "cli/render/targets_text.h"
#include "cli/render/usage_text.h"
#include "report/ending_text.h"
#include "report/html.h"
#include "report/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

namespace gpuq::cli {
namespace {

using policy::Publish;
using report::Column;
using report::html_text;
using report::Metric;
using report::metric_label;
using sim::QueueWaits;

constexpr std::chrono::minutes k_reload{5}; ///< as often as contrib/systemd/gpuq-site.timer
constexpr const char* k_others = "others";
constexpr const char* k_hidden = "-";

std::string_view word_of(Publish::Use use)
{
    return use == Publish::Use::by_lab ? "lab" : "account";
}

std::string count_text(const std::optional<int>& count)
{
    return count ? std::to_string(*count) : "?";
}

/// `2026-11-28 16:40:07 CET`.
std::string time_text(Time at)
{
    const std::time_t seconds =
        std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
    std::tm parts = {};
    ::localtime_r(&seconds, &parts);
    return fmt::format("{} {}", moment_text(at, Time()), parts.tm_zone);
}

std::optional<int> sum_of(const std::vector<ModelGpus>& gpus, std::optional<int> ModelGpus::*count)
{
    std::optional<int> sum = 0;
    for (const ModelGpus& one : gpus) {
        sum = sum && one.*count ? std::optional(*sum + *(one.*count)) : std::nullopt;
    }
    return sum;
}

int total_of(const std::vector<ModelGpus>& gpus)
{
    int total = 0;
    for (const ModelGpus& one : gpus) {
        total += one.total;
    }
    return total;
}

struct Targets {
    int known = 0;
    int met = 0;
};

Targets targets_of(const std::vector<QueueWaits>& queues)
{
    Targets targets;
    for (const QueueWaits& queue : queues) {
        for (const sim::KeptTarget& target : queue.targets) {
            targets.known += target.met() ? 1 : 0;
            targets.met += target.met().value_or(false) ? 1 : 0;
        }
    }
    return targets;
}

std::string figure(const std::string& value, const std::string& what)
{
    return fmt::format("<div><dt>{}</dt><dd class=\"now\">{}</dd></div>\n", html_text(what),
                       html_text(value));
}

/// GPU time of a week that all GPUs of today have.
std::int64_t gpu_seconds_of(int gpus)
{
    return std::int64_t{gpus} * std::chrono::seconds(k_site_week).count();
}

PublicUse sum_of(const std::vector<PublicUse>& rows)
{
    PublicUse sum;
    for (const PublicUse& row : rows) {
        sum.gpu_seconds += row.gpu_seconds;
        sum.busy += row.busy;
        sum.idle += row.idle;
    }
    return sum;
}

std::string key_figures(const SiteState& state)
{
    const int total = total_of(state.gpus);
    std::string text =
        figure(fmt::format("{} of {}", count_text(sum_of(state.gpus, &ModelGpus::free)), total),
               "GPUs are free");
    if (state.history) {
        if (const auto& rows = state.history->by_model) {
            const PublicUse sum = sum_of(*rows);
            text += figure(percent_text(sum.gpu_seconds, gpu_seconds_of(total)),
                           "of the week's GPU time was allocated");
            const std::int64_t measured = sum.busy + sum.idle;
            text += figure(measured == 0 ? "?" : percent_text(sum.busy, measured),
                           "of the measured GPU time was busy");
        }
        if (const Targets targets = targets_of(state.history->week); targets.known > 0) {
            text +=
                figure(fmt::format("{} of {}", targets.met, targets.known), "wait targets are met");
        }
    }
    return fmt::format("<dl class=\"key four\">\n{}</dl>\n", text);
}

report::Table gpus_table(const std::vector<ModelGpus>& gpus)
{
    report::Table table;
    table.columns = {{"model", "MODEL"}};
    for (const auto& [name, title] : {std::pair("free", "FREE"),
                                      {"used", "IN USE"},
                                      {"down", "DOWN"},
                                      {"blocked", "BLOCKED"},
                                      {"total", "TOTAL"}}) {
        table.columns.push_back({name, title, Column::Align::right});
    }
    for (const ModelGpus& one : gpus) {
        table.rows.push_back(
            {report::Cell(one.model.empty() ? "GPU" : one.model),
             report::Cell(count_text(one.free)), report::Cell(count_text(one.in_use)),
             report::Cell(std::to_string(one.down)), report::Cell(std::to_string(one.blocked)),
             report::Cell(std::to_string(one.total))});
    }
    return table;
}

/// Queues without figures have a `-` instead of zeros.
report::Table waits_table(const std::vector<QueueWaits>& queues, bool with_targets)
{
    TargetResults results;
    results.queues = queues;
    auto table = *report::only(targets_table(results),
                               with_targets ? "queue,jobs,waiting,p50,p95,max,targets"
                                            : "queue,jobs,waiting,p50,p95,max");
    for (std::size_t i = 0; i < queues.size(); ++i) {
        if (queues[i].all.jobs == 0) {
            std::fill(table.rows[i].begin() + 1, table.rows[i].end(), report::Cell(k_hidden));
        }
    }
    return table;
}

std::string section(const std::string& title, const std::string& content)
{
    return fmt::format("<h2>{}</h2>\n{}", html_text(title), content);
}

std::string paragraph(const std::string& text)
{
    return fmt::format("<p class=\"soft\">{}</p>\n", html_text(text));
}

std::string wide(const report::Table& table, const std::string& caption)
{
    return fmt::format("<div class=\"wide-table\">{}</div>\n", report::html_table(table, caption));
}

std::string waits_sections(const SiteState& state)
{
    if (!state.history) {
        return section("Waits", paragraph("Unknown: Slurm's accounting does not answer."));
    }
    const std::string hidden = fmt::format("{}: no jobs, or jobs of fewer than {} users.", k_hidden,
                                           state.publish.least_users.value);
    const std::string all =
        "Time until jobs with GPUs started, by queue: the median, the 95th percentile and the "
        "longest. >=: some still wait. ?: too few jobs. ";
    return section("Waits of the last day",
                   wide(waits_table(state.history->day, false), all + hidden)) +
           section("Waits of the last week, and their targets",
                   wide(waits_table(state.history->week, true), hidden));
}

std::string whole_hours(std::int64_t seconds)
{
    return seconds > 0 && seconds < 3600
               ? "< 1"
               : fmt::format("{:.0f}", static_cast<double>(seconds) / 3600);
}

/// `gpus`: by which the allocated part of each row is known; null: no such column.
report::Table use_table(const std::vector<PublicUse>& rows, const std::vector<ModelGpus>* gpus)
{
    report::Table table;
    table.columns = {{"name", "NAME"}, {"hours", "GPU-HOURS", Column::Align::right}};
    if (gpus != nullptr) {
        table.columns.push_back({"allocated", "ALLOCATED", Column::Align::right});
    }
    for (const auto& [name, title] :
         {std::pair("busy", "BUSY"), {"idle", "IDLE"}, {"unknown", "UNKNOWN"}}) {
        table.columns.push_back({name, title, Column::Align::right});
    }
    for (const PublicUse& row : rows) {
        const std::string unnamed = gpus != nullptr ? "any" : "unknown";
        std::vector<report::Cell> cells{report::Cell(!row.name           ? k_others
                                                     : row.name->empty() ? unnamed
                                                                         : *row.name),
                                        report::Cell(whole_hours(row.gpu_seconds))};
        if (gpus != nullptr) {
            const auto found = std::find_if(gpus->begin(), gpus->end(), [&](const ModelGpus& one) {
                return row.name == one.model;
            });
            cells.emplace_back(found == gpus->end()
                                   ? "?"
                                   : percent_text(row.gpu_seconds, gpu_seconds_of(found->total)));
        }
        for (const std::int64_t part : {row.busy, row.idle, row.unknown()}) {
            cells.emplace_back(percent_text(part, row.gpu_seconds));
        }
        table.rows.push_back(std::move(cells));
    }
    return table;
}

std::string use_section(const SiteState& state, const std::string& by,
                        const std::optional<std::vector<PublicUse>>& rows,
                        const std::vector<ModelGpus>* gpus)
{
    const std::string title = fmt::format("Use of the last week by {}", by);
    if (!rows) {
        return section(title, paragraph(fmt::format("Not shown: fewer than {} users.",
                                                    state.publish.least_users.value)));
    }
    if (rows->empty()) {
        return section(title, paragraph("No jobs with GPUs that Slurm shows to this page."));
    }
    const std::string allocated =
        gpus == nullptr ? "" : "Allocated: of the time that the present GPUs have. ";
    return section(title, wide(use_table(*rows, gpus),
                               fmt::format("{}Busy, idle and unknown: parts of the GPU-hours. {}: "
                                           "those with fewer than {} users, together.",
                                           allocated, k_others, state.publish.least_users.value)));
}

std::string use_sections(const SiteState& state)
{
    if (!state.history) {
        return section("Use", paragraph("Unknown: Slurm's accounting does not answer."));
    }
    std::string text = use_section(state, "model", state.history->by_model, &state.gpus);
    if (state.publish.use != Publish::Use::by_model) {
        text += use_section(state, std::string(word_of(state.publish.use)), state.history->by_name,
                            nullptr);
    }
    return text;
}

std::string planned_section(const SiteState& state)
{
    constexpr const char* k_title = "Reserved and planned";
    if (!state.planned) {
        return section(k_title, paragraph("Unknown: Slurm does not show its reservations."));
    }
    if (state.planned->empty()) {
        return section(k_title, paragraph("Nothing."));
    }
    report::Table table;
    table.columns = {{"from", "FROM"},
                     {"until", "UNTIL"},
                     {"gpus", "GPUS", Column::Align::right},
                     {"what", "FOR"}};
    for (const PlannedUse& one : *state.planned) {
        table.rows.push_back({report::Cell(clock_text(one.from, state.at)),
                              report::Cell(clock_text(one.until, state.at)),
                              report::Cell(std::to_string(one.gpus)), report::Cell(one.what)});
    }
    return section(k_title, wide(table, "GPUs of nodes that are reserved, by start."));
}

} // namespace

std::vector<ModelGpus> gpus_by_model(const std::vector<GpuPool>& pools)
{
    std::map<std::string, ModelGpus> models;
    const auto add = [](std::optional<int>& sum, const std::optional<int>& count) {
        sum = sum && count ? std::optional(*sum + *count) : std::nullopt;
    };
    for (const GpuPool& pool : pools) {
        ModelGpus& sum =
            models.try_emplace(pool.model, ModelGpus{pool.model, 0, 0, 0}).first->second;
        sum.total += pool.total;
        sum.down += pool.down;
        sum.blocked += pool.blocked;
        add(sum.free, pool.free);
        add(sum.in_use, pool.in_use);
    }
    std::vector<ModelGpus> list;
    for (auto& [model, sum] : models) {
        list.push_back(std::move(sum));
    }
    return list;
}

std::vector<PlannedUse> planned_use(const std::vector<ReservedGpus>& reserved,
                                    const policy::Policy* policy)
{
    std::vector<PlannedUse> list;
    for (const ReservedGpus& one : reserved) {
        const Reservation& reservation = one.reservation;
        const bool is_course =
            policy != nullptr && std::any_of(policy->courses.begin(), policy->courses.end(),
                                             [&](const policy::Course& course) {
                                                 return course.name == reservation.name;
                                             });
        list.push_back({reservation.start, reservation.end, one.gpus,
                        !is_course                ? "reservation"
                        : policy->publish.courses ? "course " + reservation.name
                                                  : "course"});
    }
    return list;
}

std::vector<QueueWaits> public_waits(std::vector<QueueWaits> queues, std::size_t least_users)
{
    for (QueueWaits& queue : queues) {
        queue.models.clear();
        if (queue.users < least_users) {
            queue = QueueWaits{queue.queue, {}, {}, {}};
        }
    }
    return queues;
}

std::string site_page(const SiteState& state)
{
    const std::string title = fmt::format("GPUs of {}", state.cluster);
    const std::string body =
        fmt::format("<h1>{}</h1>\n", html_text(title)) +
        paragraph(fmt::format("State of {}. The page reloads itself every {}: if this time is "
                              "older, the page is out of date.",
                              time_text(state.at), describe(k_reload))) +
        key_figures(state) +
        section("Now", wide(gpus_table(state.gpus),
                            "Blocked: not in use, but reserved, in no open queue or on a node "
                            "without a free core. ?: unknown.")) +
        waits_sections(state) + use_sections(state) + planned_section(state) +
        fmt::format("<footer>\n<p>Busy, idle: as measured by the runs of gpuq; unknown: other "
                    "jobs, and jobs that still run. No figure is that of fewer than {} users.</p>\n"
                    "<p>Made by gpuq {} site; see man gpuq-site.</p>\n</footer>\n",
                    state.publish.least_users.value, GPUQ_VERSION);
    return report::html_page(title, body, k_reload);
}

namespace {

void add_gpus(std::string& text, const SiteState& state)
{
    Metric metric(text, "gpuq_site_gpus",
                  "GPUs by model and state: free, in_use, down, blocked (reserved, in no open "
                  "queue, no free core).");
    for (const ModelGpus& one : state.gpus) {
        const auto add = [&](std::string_view word, const std::optional<int>& count) {
            if (count) {
                metric.add({metric_label("model", one.model), metric_label("state", word)}, *count);
            }
        };
        add("free", one.free);
        add("in_use", one.in_use);
        add("down", one.down);
        add("blocked", one.blocked);
    }
}

void add_waits(std::string& text, const SiteHistory& history)
{
    const std::pair<std::string_view, const std::vector<QueueWaits>&> windows[] = {
        {"1d", history.day}, {"7d", history.week}};
    const auto each = [&](Metric metric, auto add) {
        for (const auto& [window, queues] : windows) {
            for (const QueueWaits& queue : queues) {
                if (queue.all.jobs > 0) {
                    add(metric, queue,
                        std::vector{metric_label("queue", queue.queue),
                                    metric_label("window", window)});
                }
            }
        }
    };
    using Labels = std::vector<std::string>;
    each(Metric(text, "gpuq_site_queue_wait_seconds",
                "Wait of the jobs with GPUs submitted in the window, by quantile (1: the longest); "
                "pending jobs count with their wait so far."),
         [](Metric& metric, const QueueWaits& queue, const Labels& labels) {
             for (const WaitFigure& figure : k_wait_figures) {
                 if (const auto& wait = queue.all.*figure.wait) {
                     Labels all = labels;
                     all.push_back(metric_label("quantile", figure.quantile));
                     metric.add(all, wait->count());
                 }
             }
         });
    each(Metric(text, "gpuq_site_queue_jobs", "Number of these jobs, pending ones included."),
         [](Metric& metric, const QueueWaits& queue, const Labels& labels) {
             metric.add(labels, static_cast<std::int64_t>(queue.all.jobs));
         });
    each(Metric(text, "gpuq_site_queue_waiting_jobs", "Number of these jobs that are pending."),
         [](Metric& metric, const QueueWaits& queue, const Labels& labels) {
             metric.add(labels, static_cast<std::int64_t>(queue.all.waiting));
         });
}

void add_targets(std::string& text, const std::vector<QueueWaits>& week)
{
    const auto each = [&](Metric metric, auto value) {
        for (const QueueWaits& queue : week) {
            for (const WaitFigure& figure : k_wait_figures) {
                const sim::KeptTarget* const target = target_of(queue, figure);
                if (const auto found = target == nullptr ? std::nullopt : value(*target)) {
                    metric.add({metric_label("queue", queue.queue),
                                metric_label("quantile", figure.quantile)},
                               *found);
                }
            }
        }
    };
    using Found = std::optional<std::int64_t>;
    each(Metric(text, "gpuq_site_wait_target_seconds", "Wait target of the policy."),
         [](const sim::KeptTarget& target) { return Found(target.target.count()); });
    each(Metric(text, "gpuq_site_wait_target_met",
                "1: the jobs of the last seven days meet the target, 0: they do not; no sample: "
                "too few jobs."),
         [](const sim::KeptTarget& target) {
             return target.met() ? Found(*target.met() ? 1 : 0) : Found();
         });
}

void add_use(std::string& text, const std::string& name, std::string_view label,
             std::string_view help, const std::vector<PublicUse>& rows)
{
    Metric metric(text, name, help);
    for (const PublicUse& row : rows) {
        const std::string of =
            metric_label(label, row.name ? *row.name : std::string("_") + k_others);
        metric.add({of, metric_label("kind", "busy")}, row.busy);
        metric.add({of, metric_label("kind", "idle")}, row.idle);
        metric.add({of, metric_label("kind", "unknown")}, row.unknown());
    }
}

void add_planned(std::string& text, const SiteState& state)
{
    if (state.planned) {
        int reserved = 0;
        for (const PlannedUse& one : *state.planned) {
            reserved += one.from <= state.at && state.at < one.until ? one.gpus : 0;
        }
        Metric(text, "gpuq_site_reserved_gpus", "GPUs of the reservations that are active.")
            .add({}, reserved);
    }
}

} // namespace

std::string site_metrics(const SiteState& state)
{
    std::string text;
    Metric(text, "gpuq_site_timestamp_seconds", "Time of this measurement, in Unix time.")
        .add({}, std::chrono::floor<std::chrono::seconds>(state.at).time_since_epoch().count());
    Metric(text, "gpuq_site_accounting_up",
           "1: Slurm's accounting answered, 0: waits and use are unknown.")
        .add({}, state.history ? 1 : 0);
    add_gpus(text, state);
    add_planned(text, state);
    if (!state.history) {
        return text;
    }
    add_waits(text, *state.history);
    add_targets(text, state.history->week);
    if (const auto& rows = state.history->by_model) {
        add_use(text, "gpuq_site_use_gpu_seconds", "model",
                "GPU time of the last seven days by model and kind; an empty model stands for GPUs "
                "without a recorded model, _others for models with few users.",
                *rows);
    }
    if (const auto& rows = state.history->by_name) {
        const std::string_view by = word_of(state.publish.use);
        add_use(text, fmt::format("gpuq_site_{}_use_gpu_seconds", by), by,
                fmt::format("The same by {}.", by), *rows);
    }
    return text;
}

} // namespace gpuq::cli
