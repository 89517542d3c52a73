// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/records.h"

#include "core/number.h"
#include "core/strings.h"
#include "runs/records/json_fields.h"
#include "runs/records/record.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace gpuq::sweeps {
namespace {

using nlohmann::json;

constexpr std::string_view k_unknown = "-";
constexpr std::array<std::string_view, 4> k_kinds = {"began", "reached", "ended", "passed"};
constexpr std::size_t k_most_parts = 32; ///< twice as many as the longest line has
constexpr std::array<std::size_t, 4> k_parts = {6, 9, 11, 10}; ///< of a line of each kind, at least
/// The last word of each line: a line that was cut off within its last number is not taken for a
/// complete one.
constexpr std::string_view k_line_end = ".";
constexpr std::array<std::string_view, 7> k_ends = {
    "finished", "crashed", "stopped", "paused", "not_started", "lost", "stopped_early"};

template <typename Number>
std::optional<Number> parsed(std::string_view text)
{
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return !text.empty() && error == std::errc{} && rest == end ? std::optional(value)
                                                                : std::nullopt;
}

std::string or_unknown(const std::optional<double>& value)
{
    return value ? fmt::format("{}", *value) : std::string(k_unknown);
}

/// False if the text is neither a number nor unknown.
template <typename Number>
bool read_maybe(std::string_view text, std::optional<Number>& value)
{
    value = parsed<Number>(text);
    return value || text == k_unknown;
}

bool has_values(TryEvent::Kind kind)
{
    return kind == TryEvent::Kind::reached || kind == TryEvent::Kind::ended;
}

std::optional<Time> micros_in(std::string_view text)
{
    const auto count = parsed<std::int64_t>(text);
    return count && *count >= 0 ? std::optional(Time(std::chrono::microseconds(*count)))
                                : std::nullopt;
}

/// The parts after the values of an early end; nothing: they are missing or invalid.
std::optional<EarlyStop> evidence_in(std::span<const std::string_view> parts)
{
    if (parts.size() < 5) {
        return std::nullopt;
    }
    const auto rung = parsed<int>(parts[0]);
    const auto step = parsed<std::int64_t>(parts[1]);
    const auto value = parsed<double>(parts[2]), threshold = parsed<double>(parts[3]);
    const auto compared = parsed<std::size_t>(parts[4]);
    return rung && step && value && threshold && compared
               ? std::optional(EarlyStop{*rung, *step, *value, *threshold, *compared})
               : std::nullopt;
}

std::optional<RungValue> rung_in(std::span<const std::string_view> parts)
{
    const auto rung = parsed<std::int64_t>(parts[0]);
    const auto best = parsed<double>(parts[1]), mean = parsed<double>(parts[2]);
    const auto points = parsed<std::uint64_t>(parts[3]);
    return rung && best && mean && points && !std::isnan(*best) && !std::isnan(*mean)
               ? std::optional(RungValue{*rung, *best, *mean, *points})
               : std::nullopt;
}

/// The parts between blanks, as many as fit into `parts`.
std::span<const std::string_view> parts_in(std::string_view line, std::span<std::string_view> parts)
{
    std::size_t count = 0;
    for (bool is_last = false; !is_last && count < parts.size(); ++count) {
        const auto end = line.find(' ');
        is_last = end == std::string_view::npos;
        parts[count] = line.substr(0, end);
        line.remove_prefix(is_last ? line.size() : end + 1);
    }
    return parts.first(count);
}

std::vector<std::string> texts_in(const json& array)
{
    std::vector<std::string> texts;
    for (const json& text : array) {
        if (!text.is_string()) {
            return {};
        }
        texts.push_back(text.get<std::string>());
    }
    return texts;
}

json json_of(const Proposals& proposals)
{
    return {{"command", proposals.command}, {"over", proposals.over}, {"most", proposals.most}};
}

std::optional<Proposals> proposals_in(const json& object)
{
    if (!object.is_object() || !object.contains("command") || !object.contains("over")) {
        return std::nullopt;
    }
    Proposals proposals{texts_in(object["command"]), texts_in(object["over"]),
                        number_in<std::size_t>(object, "most").value_or(0)};
    return proposals.command.empty() ? std::nullopt : std::optional(std::move(proposals));
}

} // namespace

std::string to_json(const Sweep& sweep)
{
    return document_of(
        {{"name", sweep.name},
         {"parameters", sweep.parameters},
         {"metric", {{"tag", sweep.metric.tag}, {"max", sweep.metric.goal == Metric::Goal::max}}},
         {"per_gpu", sweep.per_gpu},
         {"seed", sweep.seed ? json(*sweep.seed) : json(nullptr)},
         {"gpu_minutes", sweep.gpu_time ? json(sweep.gpu_time->count()) : json(nullptr)},
         {"stop_early", sweep.stop_early ? json(to_text(*sweep.stop_early)) : json(nullptr)},
         {"propose", sweep.propose ? json_of(*sweep.propose) : json(nullptr)},
         {"run", json::parse(gpuq::to_json(sweep.run))}});
}

Result<Sweep> sweep_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, document_in(text, "sweep.json"));
    const auto part = [&](const char* name) -> const json& {
        static const json k_nothing;
        const auto found = document.find(name);
        return found == document.end() ? k_nothing : *found;
    };
    TRY_ASSIGN(Run run, run_from_json(part("run").dump()));
    const json& metric = part("metric");
    const auto minutes = number_in<std::int64_t>(document, "gpu_minutes");
    // A rule of a newer version ends no try.
    const auto rule = parse_stop_rule(text_in(document, "stop_early").value_or(""));
    return Sweep{text_in(document, "name").value_or(run.request.name),
                 texts_in(part("parameters")),
                 {text_in(metric, "tag").value_or(""),
                  flag_in(metric, "max") ? Metric::Goal::max : Metric::Goal::min},
                 std::max(1, number_in<int>(document, "per_gpu").value_or(1)),
                 number_in<std::uint64_t>(document, "seed"),
                 std::move(run),
                 minutes ? std::optional(std::chrono::minutes(*minutes)) : std::nullopt,
                 proposals_in(part("propose")),
                 rule ? std::optional(*rule) : std::nullopt};
}

std::string to_lines(const std::vector<std::vector<std::string>>& tries)
{
    std::string lines;
    for (const auto& values : tries) {
        lines += json(values).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    }
    return lines;
}

std::vector<std::vector<std::string>> tries_in(std::string_view text)
{
    std::vector<std::vector<std::string>> tries;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const json line = end == std::string_view::npos
                              ? json()
                              : json::parse(text.substr(0, end), nullptr, false);
        if (!line.is_array()) {
            break;
        }
        tries.push_back(texts_in(line));
        text.remove_prefix(end + 1);
    }
    return tries;
}

std::string to_text(const Claimant& claimant)
{
    return fmt::format("{} {}\n", claimant.worker.text(), claimant.link.value);
}

std::optional<Claimant> claimant_in(std::string_view text)
{
    const auto [key, rest] = cut(text, ' ');
    const auto worker = RunKey::parse(key);
    const auto link = whole_number(trimmed(rest));
    if (!worker || !link || *link == 0 || *link > 1'000'000) {
        return std::nullopt;
    }
    return Claimant{*worker, LinkNumber{static_cast<int>(*link)}};
}

std::string_view word(TryEnd end)
{
    return k_ends.at(static_cast<std::size_t>(end));
}

std::string text_of(TryEnd end)
{
    std::string text(word(end));
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

TryValues values_of(const telemetry::Series& curve, const Metric& metric, TryValues earlier)
{
    earlier.last = curve.last() ? std::optional(curve.last()->value) : std::nullopt;
    for (const auto& bucket : curve.buckets()) {
        const auto& point = metric.goal == Metric::Goal::min ? bucket.low : bucket.high;
        if (!earlier.best || is_better(metric, point.value, *earlier.best)) {
            earlier.best = point.value;
            earlier.best_step = point.step;
        }
    }
    return earlier;
}

std::string to_line(const TryEvent& event)
{
    std::string line = fmt::format(
        "{} {} {} {} {}", k_kinds.at(static_cast<std::size_t>(event.kind)), event.number,
        event.attempt, event.at.time_since_epoch().count(), event.link.value);
    if (event.kind == TryEvent::Kind::ended) {
        line += fmt::format(" {} {}", event.status, word(event.end));
    }
    if (has_values(event.kind)) {
        const auto& [last, best, step] = event.values;
        line += fmt::format(" {} {} {}", or_unknown(last), or_unknown(best),
                            step ? std::to_string(*step) : k_unknown);
    }
    if (event.kind == TryEvent::Kind::passed) {
        const auto& [rung, best, mean, points] = event.rung;
        line += fmt::format(" {} {} {} {}", rung, best, mean, points);
    }
    if (event.kind == TryEvent::Kind::ended && event.evidence) {
        const auto& [rung, step, value, threshold, compared] = *event.evidence;
        line += fmt::format(" {} {} {} {} {}", rung, step, value, threshold, compared);
    }
    return fmt::format("{} {}", line, k_line_end);
}

std::optional<TryEvent> try_event_in(std::string_view line)
{
    // Without an allocation: a sweep of 10,000 tries has 100,000 lines.
    std::array<std::string_view, k_most_parts> all;
    const std::span<const std::string_view> parts = parts_in(line, all);
    const auto kind = std::find(k_kinds.begin(), k_kinds.end(), parts.front());
    const auto index = static_cast<std::size_t>(kind - k_kinds.begin());
    if (kind == k_kinds.end() || parts.size() < k_parts.at(index) || parts.back() != k_line_end) {
        return std::nullopt;
    }
    const auto number = parsed<std::uint32_t>(parts[1]);
    const auto attempt = parsed<int>(parts[2]);
    const auto at = micros_in(parts[3]);
    const auto link = parsed<int>(parts[4]);
    if (!number || *number == 0 || !attempt || *attempt < 1 || !at || !link || *link < 1) {
        return std::nullopt;
    }
    TryEvent event{static_cast<TryEvent::Kind>(index), *number, *attempt, *at, LinkNumber{*link}};
    std::size_t next = 5;
    if (event.kind == TryEvent::Kind::ended) {
        const auto status = parsed<int>(parts[next++]);
        const auto end = std::find(k_ends.begin(), k_ends.end(), parts[next++]);
        if (!status || end == k_ends.end()) {
            return std::nullopt;
        }
        event.status = *status;
        event.end = static_cast<TryEnd>(end - k_ends.begin());
    }
    if (has_values(event.kind) && (!read_maybe(parts[next], event.values.last) ||
                                   !read_maybe(parts[next + 1], event.values.best) ||
                                   !read_maybe(parts[next + 2], event.values.best_step))) {
        return std::nullopt;
    }
    const auto rest = parts.subspan(next, parts.size() - next - 1);
    if (event.kind == TryEvent::Kind::passed) {
        const auto rung = rung_in(rest);
        event.rung = rung.value_or(RungValue());
        return rung ? std::optional(event) : std::nullopt;
    }
    if (event.kind == TryEvent::Kind::ended && event.end == TryEnd::stopped_early) {
        event.evidence = evidence_in(rest.subspan(3));
    }
    return event;
}

std::string to_lines(const std::vector<Retry>& retries)
{
    std::string lines;
    for (const Retry& retry : retries) {
        lines += fmt::format("{} {}\n", retry.number, retry.attempt);
    }
    return lines;
}

std::vector<Retry> retries_in(std::string_view text)
{
    std::vector<Retry> retries;
    for (const std::string_view line : fields(text, "\n")) {
        const auto [number, attempt] = cut(line, ' ');
        const auto which = parsed<std::uint32_t>(number);
        const auto of = parsed<int>(attempt);
        if (which && of) {
            retries.push_back({*which, *of});
        }
    }
    return retries;
}

} // namespace gpuq::sweeps
