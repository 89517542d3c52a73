// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/early_stop.h"

#include "core/number.h"
#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gpuq::sweeps {
namespace {

using Kind = StopRule::Kind;

constexpr std::int64_t k_last_rung = std::int64_t{1} << 60;
constexpr std::uint64_t k_most_steps = 1'000'000'000'000;
constexpr std::uint64_t k_most_tries = 1000, k_most_eta = 100;
/// Rungs of the median rule from one doubling of the step to the next.
constexpr std::array<double, 4> k_quarters = {1, 1.189207115002721, 1.4142135623730951,
                                              1.681792830507429};

double worst(const Metric& metric)
{
    constexpr double k_infinity = std::numeric_limits<double>::infinity();
    return metric.goal == Metric::Goal::min ? k_infinity : -k_infinity;
}

/// The rung with an index from 0; nothing: it is beyond the last one.
std::optional<std::int64_t> rung_at(const StopRule& rule, int index)
{
    const auto first = static_cast<double>(rule.min);
    const double rung = rule.kind == Kind::asha
                            ? first * std::pow(rule.eta, index)
                            : std::ceil(std::ldexp(first, index / 4) *
                                        k_quarters.at(static_cast<std::size_t>(index % 4)));
    return rung < static_cast<double>(k_last_rung)
               ? std::optional(static_cast<std::int64_t>(std::llround(rung)))
               : std::nullopt;
}

struct Key {
    std::string_view name;
    Kind kind;
    std::uint64_t low, high;
    void (*set)(StopRule&, std::uint64_t);
};
void set_min(StopRule& rule, std::uint64_t value)
{
    rule.min = static_cast<std::int64_t>(value);
}
constexpr std::array k_keys = {
    Key{"min", Kind::asha, 1, k_most_steps, set_min},
    Key{"min", Kind::median, 1, k_most_steps, set_min},
    Key{"eta", Kind::asha, 2, k_most_eta,
        [](StopRule& rule, std::uint64_t value) { rule.eta = static_cast<int>(value); }},
    Key{"tries", Kind::median, 1, k_most_tries,
        [](StopRule& rule, std::uint64_t value) { rule.tries = static_cast<int>(value); }},
};

Error mistake(std::size_t position, const std::string& text)
{
    return fail(Error::Kind::usage,
                fmt::format("--stop-early: character {}: {}", position + 1, text));
}

int number_of(const StopRule& rule, std::int64_t rung)
{
    int number = 1;
    for (auto step = rung_after(rule, std::numeric_limits<std::int64_t>::min());
         step && *step < rung; step = rung_after(rule, *step)) {
        ++number;
    }
    return number;
}

/// The `place`-th best, from 0.
double at_place(std::vector<double> values, std::size_t place, const Metric& metric)
{
    std::sort(values.begin(), values.end(),
              [&](double one, double other) { return is_better(metric, one, other); });
    return values[place];
}

double median_of(const std::vector<double>& values, const Metric& metric)
{
    const double upper = at_place(values, values.size() / 2, metric);
    const double lower = at_place(values, (values.size() - 1) / 2, metric);
    return upper == lower ? upper : lower / 2 + upper / 2; // both may be infinite
}

/// Nothing: the curves do not suffice for one.
std::optional<double> threshold_of(const StopRule& rule, const Metric& metric, const RungValue& own,
                                   const std::vector<RungValue>& others)
{
    std::vector<double> values;
    for (const RungValue& other : others) {
        values.push_back(rule.kind == Kind::asha ? other.best : other.mean);
    }
    if (rule.kind == Kind::median) {
        return values.size() < static_cast<std::size_t>(rule.tries)
                   ? std::nullopt
                   : std::optional(median_of(values, metric));
    }
    values.push_back(own.best);
    const auto eta = static_cast<std::size_t>(rule.eta);
    return at_place(values, (values.size() + eta - 1) / eta - 1, metric);
}

/// Applies `eta=4`, which begins at a position of the whole text.
Result<void> set_option(StopRule& rule, std::string_view pair, std::size_t position)
{
    const auto [name, value] = cut(pair, '=');
    for (const Key& key : k_keys) {
        if (key.name != name || key.kind != rule.kind) {
            continue;
        }
        const auto number = whole_number(value);
        if (!number || *number < key.low || *number > key.high) {
            const bool has_value = name.size() < pair.size();
            return mistake(position + name.size() + (has_value ? 1 : 0),
                           fmt::format("{}: '{}' is not a number from {} to {}", name, value,
                                       key.low, key.high));
        }
        key.set(rule, *number);
        return {};
    }
    const bool is_asha = rule.kind == Kind::asha;
    return mistake(position,
                   fmt::format("'{}' is not an option of {}: {}", name, is_asha ? "asha" : "median",
                               is_asha ? "eta=N or min=STEPS" : "min=STEPS or tries=N"));
}

} // namespace

Result<StopRule> parse_stop_rule(std::string_view text)
{
    const auto name = text.substr(0, text.find(':'));
    if (name != "median" && name != "asha") {
        return mistake(0, fmt::format("'{}' is not a rule: median or asha", name));
    }
    StopRule rule;
    rule.kind = name == "asha" ? Kind::asha : Kind::median;
    std::vector<std::string_view> seen;
    for (std::size_t at = name.size() + 1; at <= text.size();) {
        const auto pair = text.substr(at, text.find(',', at) - at);
        TRY(set_option(rule, pair, at));
        const auto key = pair.substr(0, pair.find('='));
        if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
            return mistake(at, fmt::format("'{}' is given twice", key));
        }
        seen.push_back(key);
        at += pair.size() + 1;
    }
    return rule;
}

std::string to_text(const StopRule& rule)
{
    return rule.kind == Kind::asha ? fmt::format("asha:eta={},min={}", rule.eta, rule.min)
                                   : fmt::format("median:min={},tries={}", rule.min, rule.tries);
}

bool compares_again(const StopRule& rule)
{
    return rule.kind == Kind::median;
}

std::optional<std::int64_t> rung_after(const StopRule& rule, std::int64_t step)
{
    for (int index = 0;; ++index) {
        const auto rung = rung_at(rule, index);
        if (!rung || *rung > step) {
            return rung;
        }
    }
}

std::vector<RungValue> Climb::passed(const telemetry::Series& curve)
{
    if (!curve.last()) {
        return {};
    }
    if (!m_has_begun) {
        m_has_begun = true;
        const bool continues =
            m_earlier && std::isfinite(m_earlier->mean) && curve.first()->step > m_earlier->rung;
        m_earlier = continues ? m_earlier : std::nullopt;
        m_reached = continues ? m_earlier->rung : m_reached;
    }
    std::vector<RungValue> values;
    while (true) {
        const auto rung = rung_after(m_rule, m_reached);
        if (!rung || *rung > curve.last()->step) {
            return values;
        }
        m_reached = *rung;
        RungValue value = value_at(*rung, curve);
        if (value.points > 0) {
            values.push_back(value);
        }
    }
}

/// Without points, if the curve has none up to the rung.
RungValue Climb::value_at(std::int64_t rung, const telemetry::Series& curve) const
{
    RungValue value{rung, worst(m_metric), 0, 0};
    if (m_earlier) {
        value.best = m_earlier->best;
        value.mean = m_earlier->mean;
        value.points = m_earlier->points;
    }
    double sum = value.mean * static_cast<double>(value.points);
    for (const auto& bucket : curve.buckets()) {
        const bool has_low = bucket.low.step <= rung, has_high = bucket.high.step <= rung;
        for (const auto* const point : {&bucket.low, &bucket.high}) {
            if (point->step <= rung && is_better(m_metric, point->value, value.best)) {
                value.best = point->value;
            }
        }
        if (has_low || has_high) {
            const double low = has_low ? bucket.low.value : bucket.high.value;
            const double high = has_high ? bucket.high.value : bucket.low.value;
            const std::uint64_t points = has_low && has_high ? bucket.points : 1;
            sum += (low / 2 + high / 2) * static_cast<double>(points);
            value.points += points;
        }
    }
    value.mean = sum / static_cast<double>(std::max<std::uint64_t>(value.points, 1));
    const auto& not_finite = curve.not_finite_since();
    if (not_finite && not_finite->step <= rung) {
        value.best = value.mean = worst(m_metric);
        ++value.points;
    }
    value.mean = std::isfinite(value.mean) ? value.mean : worst(m_metric);
    return value;
}

RungValue since(const RungValue& before, RungValue value)
{
    if (value.points <= before.points) { // of another attempt
        return value;
    }
    const auto all = static_cast<double>(value.points);
    const auto earlier = static_cast<double>(before.points);
    const double mean = before.mean + (value.mean - before.mean) * (all / (all - earlier));
    if (std::isfinite(mean)) {
        value.mean = mean;
        value.points -= before.points;
    }
    return value;
}

std::optional<EarlyStop> evaluate(const StopRule& rule, const Metric& metric, const RungValue& own,
                                  const std::vector<RungValue>& others)
{
    const auto threshold = others.empty() ? std::nullopt : threshold_of(rule, metric, own, others);
    if (!threshold || !is_better(metric, *threshold, own.best)) {
        return std::nullopt;
    }
    return EarlyStop{number_of(rule, own.rung), own.rung, own.best, *threshold, others.size()};
}

} // namespace gpuq::sweeps
