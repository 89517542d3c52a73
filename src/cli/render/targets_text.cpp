// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/targets_text.h"

#include "report/csv.h"
#include "report/ending_text.h"
#include "report/metrics.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <utility>

namespace gpuq::cli {
namespace {

using report::Column;
using report::Json;
using report::Metric;
using report::metric_label;
using sim::KeptTarget;
using sim::QueueWaits;
using sim::Seconds;
using sim::WaitFigures;

std::string figure_text(const std::optional<Seconds>& wait, const WaitFigures& figures)
{
    return wait ? (figures.waiting > 0 ? ">= " : "") + describe(*wait) : "?";
}

std::string_view verdict(const KeptTarget& target)
{
    return !target.met() ? "unknown" : *target.met() ? "met" : "MISSED";
}

std::string targets_text(const QueueWaits& queue)
{
    std::string text;
    for (const WaitFigure& figure : k_wait_figures) {
        if (const KeptTarget* const target = target_of(queue, figure)) {
            text += fmt::format("{}{} {}: {}", text.empty() ? "" : ", ", figure.name,
                                describe(target->target), verdict(*target));
        }
    }
    return text.empty() ? "none" : text;
}

Json::Members figures_json(const WaitFigures& figures)
{
    Json::Members members{{"jobs", figures.jobs}, {"waiting", figures.waiting}};
    for (const WaitFigure& figure : k_wait_figures) {
        members.emplace_back(std::string(figure.name) + "_seconds", figures.*figure.wait);
    }
    return members;
}

Json queue_json(const QueueWaits& queue)
{
    Json::Elements targets;
    for (const WaitFigure& figure : k_wait_figures) {
        if (const KeptTarget* const target = target_of(queue, figure)) {
            targets.push_back(Json::object({{"figure", figure.name},
                                            {"target_seconds", target->target},
                                            {"met", target->met()},
                                            {"line", target->line}}));
        }
    }
    Json::Elements models;
    for (const auto& [model, figures] : queue.models) {
        Json::Members members{{"model", model.empty() ? Json() : Json(model)}};
        for (auto& member : figures_json(figures)) {
            members.push_back(std::move(member));
        }
        models.push_back(Json::object(std::move(members)));
    }
    Json::Members members{{"queue", queue.queue}};
    for (auto& member : figures_json(queue.all)) {
        members.push_back(std::move(member));
    }
    members.emplace_back("targets", Json::array(std::move(targets)));
    members.emplace_back("models", Json::array(std::move(models)));
    return Json::object(std::move(members));
}

} // namespace

const KeptTarget* target_of(const QueueWaits& queue, const WaitFigure& figure)
{
    for (const KeptTarget& target : queue.targets) {
        if (target.percent == figure.percent) {
            return &target;
        }
    }
    return nullptr;
}

std::size_t missed(const TargetResults& results)
{
    std::size_t count = 0;
    for (const QueueWaits& queue : results.queues) {
        for (const KeptTarget& target : queue.targets) {
            count += target.met() == false ? 1 : 0;
        }
    }
    return count;
}

report::Table targets_table(const TargetResults& results)
{
    report::Table table;
    table.columns = {{"queue", "QUEUE"},
                     {"model", "MODEL"},
                     {"jobs", "JOBS", Column::Align::right},
                     {"waiting", "WAITING", Column::Align::right}};
    for (const char* title : {"P50", "P95", "MAX"}) {
        std::string name(title);
        for (char& c : name) {
            c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        }
        table.columns.push_back({name, title, Column::Align::right});
    }
    table.columns.push_back({"targets", "TARGETS"});
    const auto add = [&](const std::string& queue, const std::string& model,
                         const WaitFigures& figures, const std::string& targets) {
        std::vector<report::Cell> cells{report::Cell(queue), report::Cell(model),
                                        report::Cell(std::to_string(figures.jobs)),
                                        report::Cell(std::to_string(figures.waiting))};
        for (const WaitFigure& figure : k_wait_figures) {
            cells.emplace_back(figure_text(figures.*figure.wait, figures));
        }
        cells.emplace_back(targets);
        table.rows.push_back(std::move(cells));
    };
    for (const QueueWaits& queue : results.queues) {
        add(queue.queue, "all", queue.all, targets_text(queue));
        for (const auto& [model, figures] : queue.models) {
            if (queue.models.size() > 1) {
                add(queue.queue, model.empty() ? "any" : model, figures, "");
            }
        }
    }
    return table;
}

std::string targets_csv(const TargetResults& results)
{
    std::string text = "queue,model,jobs,waiting";
    for (const WaitFigure& figure : k_wait_figures) {
        text += fmt::format(",{}_seconds,{}_target_seconds,{}_met", figure.name, figure.name,
                            figure.name);
    }
    text += "\r\n";
    const auto add = [&](const QueueWaits& queue, const std::string& model,
                         const WaitFigures& figures, bool with_targets) {
        text += fmt::format("{},{},{},{}", report::csv_name(sanitised(queue.queue)),
                            report::csv_name(sanitised(model)), figures.jobs, figures.waiting);
        for (const WaitFigure& figure : k_wait_figures) {
            const auto& wait = figures.*figure.wait;
            const KeptTarget* const target = with_targets ? target_of(queue, figure) : nullptr;
            text += fmt::format(",{},{},{}", wait ? std::to_string(wait->count()) : "",
                                target != nullptr ? std::to_string(target->target.count()) : "",
                                target == nullptr || !target->met() ? ""
                                : *target->met()                    ? "true"
                                                                    : "false");
        }
        text += "\r\n";
    };
    for (const QueueWaits& queue : results.queues) {
        add(queue, "all", queue.all, true);
        for (const auto& [model, figures] : queue.models) {
            add(queue, model, figures, false);
        }
    }
    return text;
}

Json::Members targets_document(const TargetResults& results)
{
    Json::Elements queues;
    for (const QueueWaits& queue : results.queues) {
        queues.push_back(queue_json(queue));
    }
    return {{"since", results.since},         {"to", results.to},
            {"policy", results.policy},       {"queues", Json::array(std::move(queues))},
            {"withdrawn", results.withdrawn}, {"missed", missed(results)}};
}

std::string targets_metrics(const TargetResults& results)
{
    std::string text;
    const auto of_queues = [&](const std::string& name, std::string_view help,
                               const std::function<std::int64_t(const QueueWaits&)>& value) {
        Metric metric(text, name, help);
        for (const QueueWaits& queue : results.queues) {
            metric.add({metric_label("queue", queue.queue)}, value(queue));
        }
    };
    const auto of_figures =
        [&](const std::string& name, std::string_view help,
            const std::function<std::optional<std::int64_t>(const QueueWaits&, const WaitFigure&)>&
                value) {
            Metric metric(text, name, help);
            for (const QueueWaits& queue : results.queues) {
                for (const WaitFigure& figure : k_wait_figures) {
                    if (const auto found = value(queue, figure)) {
                        metric.add({metric_label("queue", queue.queue),
                                    metric_label("quantile", std::string(figure.quantile))},
                                   *found);
                    }
                }
            }
        };
    using Found = std::optional<std::int64_t>;
    of_figures("gpuq_queue_wait_seconds",
               "Wait of jobs with GPUs since they could start, by quantile (1: the longest); "
               "pending jobs count with their wait so far.",
               [](const QueueWaits& queue, const WaitFigure& figure) {
                   const auto& wait = queue.all.*figure.wait;
                   return wait ? Found(wait->count()) : Found();
               });
    {
        Metric metric(
            text, "gpuq_queue_model_wait_seconds",
            "The same by GPU model; an empty model stands for jobs without a recorded model.");
        for (const QueueWaits& queue : results.queues) {
            for (const auto& [model, figures] : queue.models) {
                for (const WaitFigure& figure : k_wait_figures) {
                    if (const auto& wait = figures.*figure.wait) {
                        metric.add({metric_label("queue", queue.queue),
                                    metric_label("model", model),
                                    metric_label("quantile", std::string(figure.quantile))},
                                   wait->count());
                    }
                }
            }
        }
    }
    of_figures("gpuq_queue_wait_target_seconds", "Wait target of the policy.",
               [](const QueueWaits& queue, const WaitFigure& figure) {
                   const KeptTarget* const target = target_of(queue, figure);
                   return target != nullptr ? Found(target->target.count()) : Found();
               });
    of_figures("gpuq_queue_wait_target_met",
               "1: the target is met, 0: it is not; no sample: too few jobs to decide.",
               [](const QueueWaits& queue, const WaitFigure& figure) {
                   const KeptTarget* const target = target_of(queue, figure);
                   return target != nullptr && target->met() ? Found(*target->met() ? 1 : 0)
                                                             : Found();
               });
    of_queues("gpuq_queue_wait_jobs", "Number of jobs in these figures, pending jobs included.",
              [](const QueueWaits& queue) { return static_cast<std::int64_t>(queue.all.jobs); });
    of_queues("gpuq_queue_waiting_jobs", "Number of these jobs that are pending.",
              [](const QueueWaits& queue) { return static_cast<std::int64_t>(queue.all.waiting); });
    const auto seconds = [](auto duration) {
        return std::int64_t{std::chrono::floor<Seconds>(duration).count()};
    };
    Metric(text, "gpuq_wait_window_seconds", "Length of the time in which the jobs were submitted.")
        .add({}, seconds(results.to - results.since));
    Metric(text, "gpuq_wait_timestamp_seconds", "Time of this measurement, in Unix time.")
        .add({}, seconds(results.to.time_since_epoch()));
    return text;
}

} // namespace gpuq::cli
