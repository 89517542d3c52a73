// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/idle.h"

#include "core/layout.h"
#include "core/timestamp.h"
#include "runs/records/json_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace gpuq {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using telemetry::IdleEvidence;
using telemetry::IdleRule;
using State = IdleFinding::State;

constexpr std::pair<State, std::string_view> k_states[] = {{State::warned, "warned"},
                                                           {State::works, "works"},
                                                           {State::released, "released"},
                                                           {State::put_off, "put_off"},
                                                           {State::exempt, "exempt"}};

json json_of(const IdleRule& rule)
{
    return {{"after_ms", rule.after.count()},
            {"warn_ms", rule.warn.count()},
            {"start_ms", rule.start.count()},
            {"max_per_hour", rule.max_per_hour}};
}

/// Nothing if the rule is invalid.
std::optional<IdleRule> rule_in(const json& object)
{
    constexpr std::int64_t k_most_ms = 400LL * 24 * 3600 * 1000;
    const auto after = number_in<std::int64_t>(object, "after_ms");
    const auto warn = number_in<std::int64_t>(object, "warn_ms");
    const auto start = number_in<std::int64_t>(object, "start_ms");
    const auto most = number_in<std::int64_t>(object, "max_per_hour");
    if (!after || !warn || !start || !most || *warn <= 0 || *warn >= *after || *after > k_most_ms ||
        *start < 0 || *start > k_most_ms || *most < 0 || !std::in_range<int>(*most)) {
        return std::nullopt;
    }
    return IdleRule{milliseconds(*after), milliseconds(*warn), milliseconds(*start),
                    static_cast<int>(*most)};
}

json json_of(const std::optional<milliseconds>& time)
{
    return time ? json(time->count()) : json();
}

json json_of(const IdleEvidence& evidence)
{
    return {{"at_ms", evidence.at.count()},
            {"idle_since_ms", evidence.idle_since.count()},
            {"missing_ms", evidence.missing.count()},
            {"samples", evidence.samples},
            {"gpu_memory_kib", evidence.memory_kib},
            {"cpu_ms", evidence.cpu_ms},
            {"disk_bytes", evidence.disk_bytes},
            {"started_ms", json_of(evidence.started)},
            {"last_input_ms", json_of(evidence.last_input)},
            {"last_output_ms", json_of(evidence.last_output)}};
}

milliseconds span_in(const json& object, const char* name)
{
    return milliseconds(number_in<std::int64_t>(object, name).value_or(0));
}

std::optional<milliseconds> maybe_span_in(const json& object, const char* name)
{
    const auto value = number_in<std::int64_t>(object, name);
    return value ? std::optional(milliseconds(*value)) : std::nullopt;
}

std::uint64_t count_in(const json& object, const char* name)
{
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(number_in<std::int64_t>(object, name).value_or(0), 0));
}

IdleEvidence evidence_in(const json& object)
{
    IdleEvidence evidence;
    evidence.at = span_in(object, "at_ms");
    evidence.idle_since = span_in(object, "idle_since_ms");
    evidence.missing = span_in(object, "missing_ms");
    evidence.samples = count_in(object, "samples");
    evidence.memory_kib = count_in(object, "gpu_memory_kib");
    evidence.cpu_ms = count_in(object, "cpu_ms");
    evidence.disk_bytes = count_in(object, "disk_bytes");
    evidence.started = maybe_span_in(object, "started_ms");
    evidence.last_input = maybe_span_in(object, "last_input_ms");
    evidence.last_output = maybe_span_in(object, "last_output_ms");
    return evidence;
}

/// `30 min`, `45 s`.
std::string span_text(milliseconds time)
{
    const auto whole = std::chrono::round<seconds>(time);
    return whole < seconds(120)
               ? fmt::format("{} s", whole.count())
               : fmt::format("{} min", std::chrono::round<std::chrono::minutes>(whole).count());
}

milliseconds idle_for(const IdleFinding& finding)
{
    return finding.evidence.at - finding.evidence.idle_since;
}

/// The countdown of a warned run. A run that worked again or was released would have another
/// finding.
std::string countdown(const IdleFinding& finding, Time now)
{
    const auto since =
        std::chrono::floor<milliseconds>(std::max(now - finding.at, Time::duration()));
    const milliseconds left = finding.left - since;
    return fmt::format("its GPUs were unused for {}; released {} unless it works",
                       span_text(idle_for(finding) + since),
                       left > milliseconds(0) ? "in " + span_text(left) : "now");
}

} // namespace

std::string idle_rules_json(const RunKey& key)
{
    return layout::run_dir(key) + "/" + k_idle_rules;
}

std::string exempt_json(const RunKey& key)
{
    return layout::inbox(key) + "/" + k_exempt_request;
}

std::string idle_finding_json(const RunKey& key, LinkNumber link)
{
    return layout::link_dir(key, link) + "/" + k_idle_finding;
}

std::string to_json(const IdleRules& rules)
{
    json partitions = json::object();
    for (const auto& [partition, rule] : rules) {
        partitions[partition] = json_of(rule);
    }
    return document_of({{"partitions", partitions}});
}

Result<IdleRules> idle_rules_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, document_in(text, k_idle_rules));
    IdleRules rules;
    const auto partitions = document.find("partitions");
    if (partitions == document.end() || !partitions->is_object()) {
        return fail(Error::Kind::usage, fmt::format("{} contains no partitions", k_idle_rules));
    }
    for (const auto& [partition, each] : partitions->items()) {
        if (const auto rule = rule_in(each)) {
            rules[partition] = *rule;
        }
    }
    return rules;
}

std::string to_json(const Exemption& exemption)
{
    return document_of(
        {{"by", exemption.by}, {"reason", exemption.reason}, {"at", to_iso8601(exemption.at)}});
}

Result<Exemption> exemption_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, document_in(text, k_exempt_request));
    const auto at = time_in(document, "at");
    if (!at) {
        return fail(Error::Kind::usage, fmt::format("{} has no time", k_exempt_request));
    }
    return Exemption{text_in(document, "by").value_or(""), text_in(document, "reason").value_or(""),
                     *at};
}

std::string_view word(State state)
{
    for (const auto& [each, name] : k_states) {
        if (each == state) {
            return name;
        }
    }
    return {};
}

std::string to_json(const IdleFinding& finding)
{
    return document_of({{"state", word(finding.state)},
                        {"at", to_iso8601(finding.at)},
                        {"partition", finding.partition},
                        {"rule", json_of(finding.rule)},
                        {"left_ms", finding.left.count()},
                        {"evidence", json_of(finding.evidence)}});
}

Result<IdleFinding> idle_finding_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, document_in(text, k_idle_finding));
    const std::string name = text_in(document, "state").value_or("");
    const auto at = time_in(document, "at");
    const auto rule = rule_in(document.value("rule", json()));
    const json evidence = document.value("evidence", json());
    IdleFinding finding;
    for (const auto& [state, spelled] : k_states) {
        if (spelled == name && at && rule && evidence.is_object()) {
            finding.state = state;
            finding.at = *at;
            finding.partition = text_in(document, "partition").value_or("");
            finding.rule = *rule;
            finding.left = span_in(document, "left_ms");
            finding.evidence = evidence_in(evidence);
            return finding;
        }
    }
    return fail(Error::Kind::usage, fmt::format("{} can not be read", k_idle_finding));
}

std::string released_detail(milliseconds unused)
{
    return fmt::format("released: its GPUs were unused for {}", span_text(unused));
}

std::string idle_warning(const IdleFinding& finding, const std::string& run)
{
    return fmt::format("idle for {}: its GPUs are released in {} unless it works; "
                       "gpuq exempt {} --reason TEXT keeps them",
                       span_text(idle_for(finding)), span_text(finding.left), run);
}

std::string describe(const Exemption& exemption)
{
    return fmt::format("its idle GPUs are not released: exempted by {} ({})", exemption.by,
                       exemption.reason);
}

std::string describe(const IdleFinding& finding, std::optional<Time> now)
{
    if (finding.state == State::warned && now) {
        return countdown(finding, *now);
    }
    const std::string unused =
        fmt::format("its GPUs were unused for {}", span_text(idle_for(finding)));
    const IdleEvidence& evidence = finding.evidence;
    const std::string printed =
        fmt::format("{} samples, {} of {} without one, {:.1f} s of CPU", evidence.samples,
                    span_text(evidence.missing), span_text(finding.rule.after),
                    static_cast<double>(evidence.cpu_ms) / 1000);
    switch (finding.state) {
    case State::warned:
        return fmt::format("{} when it was warned", unused);
    case State::works:
        return "works again after a warning";
    case State::released:
        return fmt::format("released by the rule of queue {}: {} ({})", finding.partition, unused,
                           printed);
    case State::put_off:
        return fmt::format("{}, but {} runs were released within the hour: it keeps running",
                           unused, finding.rule.max_per_hour);
    case State::exempt:
        return unused + ", and it is exempt";
    }
    return {};
}

IdleRecords idle_records(Store& store, const RunKey& key, LinkNumber link)
{
    IdleRecords records;
    if (const auto text = store.read(exempt_json(key))) {
        auto exemption = exemption_from_json(*text);
        records.exemption = exemption ? std::optional(*std::move(exemption)) : std::nullopt;
    }
    if (const auto text = store.read(idle_finding_json(key, link))) {
        auto finding = idle_finding_from_json(*text);
        records.finding = finding ? std::optional(*std::move(finding)) : std::nullopt;
    }
    return records;
}

} // namespace gpuq
