// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/metric.h"

#include "telemetry/metric_direction.h"

#include <fmt/format.h>

#include <string>

namespace gpuq::sweeps {
namespace {

constexpr std::size_t k_longest_tag = 256;

bool ends_with_word(std::string_view tag, std::string_view word)
{
    if (!tag.ends_with(word) || tag.size() == word.size()) {
        return tag == word;
    }
    const char before = tag[tag.size() - word.size() - 1];
    return before == '/' || before == '_';
}

} // namespace

Result<Metric> parse_metric(std::string_view text)
{
    const auto colon = text.rfind(':');
    const auto goal = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    const bool has_goal = goal == "min" || goal == "max";
    const auto tag = has_goal ? text.substr(0, colon) : text;
    if (tag.empty() || tag.size() > k_longest_tag) {
        return fail(Error::Kind::usage,
                    fmt::format("--metric: '{}' is not the name of a metric, such as loss:min or "
                                "val/accuracy:max",
                                text));
    }
    if (!has_goal && colon != std::string_view::npos) {
        return fail(Error::Kind::usage,
                    fmt::format("--metric: '{}' is neither min nor max; if it is part of the name, "
                                "add :min or :max",
                                goal));
    }
    const bool is_max =
        has_goal ? goal == "max" : telemetry::better_of(tag) == telemetry::Better::higher;
    return Metric{std::string(tag), is_max ? Metric::Goal::max : Metric::Goal::min};
}

std::string name_of(const Metric& metric)
{
    return metric.tag.empty() ? "loss" : metric.tag;
}

std::string to_text(const Metric& metric)
{
    return fmt::format("{}:{}", name_of(metric), metric.goal == Metric::Goal::min ? "min" : "max");
}

bool is_better(const Metric& metric, double one, double other)
{
    return metric.goal == Metric::Goal::min ? one < other : one > other;
}

const telemetry::Series* series_of(const telemetry::Curves& curves, const Metric& metric)
{
    if (metric.tag.empty()) {
        const auto* const loss = telemetry::main_loss(curves);
        return loss == nullptr ? nullptr : &loss->second;
    }
    if (const auto* const exact = curves.find(metric.tag)) {
        return exact;
    }
    const std::pair<const std::string, telemetry::Series>* found = nullptr;
    for (const auto& entry : curves.by_tag()) {
        if (ends_with_word(entry.first, metric.tag) &&
            (found == nullptr || entry.first.size() < found->first.size())) {
            found = &entry;
        }
    }
    return found == nullptr ? nullptr : &found->second;
}

} // namespace gpuq::sweeps
