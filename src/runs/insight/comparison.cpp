// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/comparison.h"

#include "core/redact.h"
#include "core/size.h"
#include "runs/insight/program_arguments.h"
#include "runs/time_used.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace gpuq {
namespace {

using telemetry::Better;
using telemetry::Point;
using telemetry::Series;
using Kind = SettingValue::Kind;
using Of = Setting::Of;

// Settings.

/// A setting of one run.
struct Found {
    Of of = Of::request;
    std::string name;
    SettingValue value;
    std::string raw; ///< with secrets, for comparisons only
};

std::string number_text(const std::optional<int>& number)
{
    return number ? std::to_string(*number) : "";
}

std::string ranks_text(const Request& request)
{
    const std::string tasks = number_text(request.tasks_per_node);
    return request.gpus_per_task
               ? fmt::format("{}, each with {} GPUs", tasks, *request.gpus_per_task)
               : tasks;
}

std::string gpus_text(const Request& request)
{
    return request.gpus.count == 0 ? "none" : to_text(request.gpus);
}

/// Empty: absent.
std::vector<std::pair<std::string, std::string>> settings_of(const Request& request)
{
    const auto joined = [](const std::vector<std::string>& texts) {
        return fmt::format("{}", fmt::join(texts, " "));
    };
    return {{"directory", request.work_dir},
            {"queue", request.queue},
            {"GPUs", gpus_text(request)},
            {"nodes", std::to_string(request.nodes)},
            {"ranks", ranks_text(request)},
            {"cores", number_text(request.cpus)},
            {"memory", request.memory_mib ? memory_text(*request.memory_mib) : ""},
            {"conda", request.setup.conda.value_or("")},
            {"venv", request.setup.venv.value_or("")},
            {"container", request.setup.container.value_or("")},
            {"modules", joined(request.setup.modules)},
            {"sources", joined(request.setup.sources)},
            {"for Slurm", request.slurm_options.value_or("")}};
}

SettingValue value_of(const ProgramArgument& argument)
{
    if (argument.values > 0) {
        return {Kind::given, argument.shown};
    }
    return argument.times == 1 ? SettingValue{Kind::switched, ""}
                               : SettingValue{Kind::given, fmt::format("{} times", argument.times)};
}

/// All settings of a run; absent ones of the request too, so that the order is always the same.
std::vector<Found> found_in(const Run& run, const Redactor& redactor)
{
    std::vector<Found> all;
    const auto add = [&](const std::string& name, const std::string& raw) {
        const Kind kind = raw.empty() ? Kind::absent : Kind::given;
        all.push_back({Of::request, name, {kind, redactor.text(raw)}, raw});
    };
    const ParsedProgram parsed = parse_program(run.request.program, redactor);
    add("program", parsed.program);
    add("script", parsed.script);
    for (const auto& [name, text] : settings_of(run.request)) {
        add(name, text);
    }
    for (const auto& [name, value] : run.request.setup.env) {
        all.push_back({Of::request, "env " + name, {Kind::hidden, ""}, value});
    }
    for (const ProgramArgument& argument : parsed.arguments) {
        all.push_back({Of::arguments, argument.name, value_of(argument), argument.raw});
    }
    return all;
}

/// Numbers the secret values of a setting, so that different ones can be told apart.
class Secrets {
public:
    SettingValue hidden(const std::string& raw)
    {
        const auto at = std::find(m_known.begin(), m_known.end(), raw);
        const auto number = at - m_known.begin() + 1;
        if (at == m_known.end()) {
            m_known.push_back(raw);
        }
        return {Kind::hidden, fmt::format("value {}", number)};
    }

private:
    std::vector<std::string> m_known;
};

SettingValue shown_value(const Found& found, Secrets& secrets)
{
    const bool has_secret = found.value.kind == Kind::hidden ||
                            found.value.text.find(k_removed_secret) != std::string::npos;
    return has_secret ? secrets.hidden(found.raw) : found.value;
}

/// The setting over all runs; nothing if it is the same in all.
std::optional<Setting> difference(Of of, const std::string& name,
                                  const std::vector<std::optional<std::vector<Found>>>& runs)
{
    Setting setting{of, name, {}};
    Secrets secrets;
    std::set<std::tuple<Kind, std::string, std::string>> values;
    for (const auto& run : runs) {
        if (!run) {
            setting.values.push_back({Kind::unknown, ""});
            continue;
        }
        const auto found = std::find_if(run->begin(), run->end(), [&](const Found& one) {
            return one.of == of && one.name == name;
        });
        if (found == run->end()) {
            setting.values.push_back({Kind::absent, ""});
            values.insert({Kind::absent, "", ""});
        } else {
            setting.values.push_back(shown_value(*found, secrets));
            values.insert({found->value.kind, found->raw, found->value.text});
        }
    }
    return values.size() > 1 ? std::optional(std::move(setting)) : std::nullopt;
}

std::vector<Setting> differences(const std::vector<RunToCompare>& runs)
{
    Redactor redactor;
    for (const RunToCompare& run : runs) {
        if (run.status.run) {
            redactor.learn_environment(run.status.run->environment);
            std::vector<std::string> given;
            for (const auto& [name, value] : run.status.run->request.setup.env) {
                given.push_back(fmt::format("{}={}", name, value));
            }
            redactor.learn_environment(given);
        }
    }
    std::vector<std::optional<std::vector<Found>>> found;
    std::vector<std::pair<Of, std::string>> names; // in the order in which they appear
    for (const RunToCompare& run : runs) {
        found.push_back(run.status.run ? std::optional(found_in(*run.status.run, redactor))
                                       : std::nullopt);
        for (const Found& one : found.back().value_or(std::vector<Found>())) {
            const std::pair name(one.of, one.name);
            if (std::find(names.begin(), names.end(), name) == names.end()) {
                names.push_back(name);
            }
        }
    }
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Setting> settings;
    for (const auto& [of, name] : names) {
        if (auto setting = difference(of, name, found)) {
            settings.push_back(*std::move(setting));
        }
    }
    return settings;
}

// Metrics.

/// Merges neighbouring buckets until the curve is small enough; their extremes remain.
std::vector<Point> curve_of(const Series& series)
{
    constexpr std::size_t k_per_group = 3; // a gap, the lowest and the highest
    constexpr std::size_t k_groups = Comparison::k_most_points / k_per_group;
    const auto& buckets = series.buckets();
    const std::size_t size = std::max<std::size_t>(1, (buckets.size() + k_groups - 1) / k_groups);
    std::vector<Point> curve;
    for (std::size_t begin = 0; begin < buckets.size(); begin += size) {
        Point low = buckets[begin].low, high = buckets[begin].high;
        bool gap = false;
        for (std::size_t i = begin; i < std::min(begin + size, buckets.size()); ++i) {
            low = buckets[i].low.value < low.value ? buckets[i].low : low;
            high = buckets[i].high.value > high.value ? buckets[i].high : high;
            gap = gap || buckets[i].gap_before;
        }
        if (gap && !curve.empty()) {
            curve.push_back({curve.back().step, {}, std::numeric_limits<double>::quiet_NaN()});
        }
        const bool falls = high.step < low.step;
        curve.push_back(falls ? high : low);
        if (!(low == high)) {
            curve.push_back(falls ? low : high);
        }
    }
    return curve;
}

MetricOfRun metric_of(const std::string& tag, const Series& series)
{
    MetricOfRun metric{tag, {}, {}, *series.last(), series.points(), curve_of(series)};
    for (const Series::Bucket& bucket : series.buckets()) {
        if (!metric.lowest || bucket.low.value < metric.lowest->value) {
            metric.lowest = bucket.low;
        }
        if (!metric.highest || bucket.high.value > metric.highest->value) {
            metric.highest = bucket.high;
        }
    }
    return metric;
}

std::optional<std::size_t> best_run(const ComparedMetric& metric)
{
    std::optional<std::size_t> best;
    std::size_t known = 0;
    bool is_tie = false;
    for (std::size_t i = 0; i < metric.runs.size(); ++i) {
        const auto value = metric.runs[i] ? best_of(*metric.runs[i], metric.better) : std::nullopt;
        if (!value) {
            continue;
        }
        ++known;
        const double before = best ? best_of(*metric.runs[*best], metric.better)->value : 0;
        const bool wins = !best || (metric.better == Better::lower ? value->value < before
                                                                   : value->value > before);
        is_tie = !wins && (is_tie || value->value == before);
        best = wins ? i : best;
    }
    return known > 1 && !is_tie ? best : std::nullopt;
}

/// The metric of that tag in each run.
ComparedMetric metric_of(const std::vector<RunToCompare>& runs, const std::string& tag)
{
    ComparedMetric metric{tag, false, telemetry::better_of(tag), {}, {}};
    for (const RunToCompare& run : runs) {
        const Series* const series = run.training.curves.find(tag);
        metric.runs.push_back(series != nullptr ? std::optional(metric_of(tag, *series))
                                                : std::nullopt);
    }
    metric.best_run = best_run(metric);
    return metric;
}

/// Nothing if a run with metrics has no loss.
std::optional<ComparedMetric> main_loss_of(const std::vector<RunToCompare>& runs)
{
    ComparedMetric metric{"", true, Better::lower, {}, {}};
    std::set<std::string> tags;
    for (const RunToCompare& run : runs) {
        const auto* const loss = telemetry::main_loss(run.training.curves);
        if (loss == nullptr && !run.training.curves.by_tag().empty()) {
            return std::nullopt;
        }
        if (loss != nullptr) {
            tags.insert(loss->first);
        }
        metric.runs.push_back(loss != nullptr ? std::optional(metric_of(loss->first, loss->second))
                                              : std::nullopt);
    }
    if (tags.empty()) {
        return std::nullopt;
    }
    metric.name = tags.size() == 1 ? *tags.begin() : "main loss";
    metric.best_run = best_run(metric);
    return metric;
}

void add_metrics(Comparison& comparison, const std::vector<RunToCompare>& runs)
{
    std::map<std::string, std::size_t> count; // runs that have it
    std::size_t with_metrics = 0;
    for (const RunToCompare& run : runs) {
        with_metrics += run.training.curves.by_tag().empty() ? 0 : 1;
        for (const auto& [tag, series] : run.training.curves.by_tag()) {
            ++count[tag];
        }
    }
    if (auto loss = main_loss_of(runs)) {
        for (const auto& one : loss->runs) {
            if (one && (loss->name == one->tag || count[one->tag] < with_metrics)) {
                count.erase(one->tag); // already compared
            }
        }
        comparison.metrics.push_back(*std::move(loss));
    }
    for (const auto& [tag, having] : count) {
        if (having < with_metrics) {
            ++comparison.metrics_not_common;
        } else if (comparison.metrics.size() == Comparison::k_most_metrics) {
            ++comparison.metrics_left_out;
        } else {
            comparison.metrics.push_back(metric_of(runs, tag));
        }
    }
}

/// Groups of runs with metrics from the same file.
std::vector<std::vector<std::size_t>> same_file(const std::vector<RunToCompare>& runs)
{
    std::map<std::string, std::vector<std::size_t>> by_path;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const std::string& source = runs[i].training.source;
        if (source.empty() || !runs[i].status.run) {
            continue;
        }
        const std::string& directory = runs[i].status.run->request.work_dir;
        by_path[source.front() == '/' ? source : directory + "/" + source].push_back(i);
    }
    std::vector<std::vector<std::size_t>> groups;
    for (auto& [path, group] : by_path) {
        if (group.size() > 1) {
            groups.push_back(std::move(group));
        }
    }
    return groups;
}

ComparedRun compared(const RunToCompare& run, Time now)
{
    ComparedRun result{run.status,
                       time_used(run.status, now),
                       {},
                       run.training.source,
                       !run.training.curves.by_tag().empty()};
    if (result.duration && run.status.run) {
        using Hours = std::chrono::duration<double, std::ratio<3600>>;
        result.gpu_hours = Hours(run.gpu_time.allocated()).count();
    }
    return result;
}

} // namespace

std::optional<Point> best_of(const MetricOfRun& metric, Better better)
{
    switch (better) {
    case Better::lower:
        return metric.lowest;
    case Better::higher:
        return metric.highest;
    case Better::unknown:
        break;
    }
    return std::nullopt;
}

Comparison compare(const std::vector<RunToCompare>& runs, Time now)
{
    Comparison comparison;
    std::transform(runs.begin(), runs.end(), std::back_inserter(comparison.runs),
                   [&](const RunToCompare& run) { return compared(run, now); });
    comparison.settings = differences(runs);
    add_metrics(comparison, runs);
    comparison.same_file = same_file(runs);
    return comparison;
}

} // namespace gpuq
