// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/profile_text.h"

#include "cli/render/run_table.h"
#include "cli/render/sample_text.h"
#include "report/ending_text.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace gpuq::cli {
namespace {

using report::Column;
using report::Json;
using std::chrono::seconds;
using telemetry::k_gpu_measures;
using telemetry::k_measures;
using telemetry::k_phases;
using telemetry::Measure;
using telemetry::Measured;
using telemetry::Phase;
using telemetry::Profile;
using telemetry::ProfileAdvice;
using telemetry::Track;

constexpr std::size_t k_width = 80;

/// Parts of the idle time, in the order in which they are shown.
constexpr std::array k_idle_parts = {Phase::start_up, Phase::waiting, Phase::saving,
                                     Phase::other_idle};

std::string hours_text(seconds time)
{
    const auto count = time.count();
    return fmt::format("{}:{:02}:{:02}", count / 3600, count % 3600 / 60, count % 60);
}

std::string percent_text(seconds part, seconds all)
{
    return all.count() > 0
               ? fmt::format("{:.1f} %", 100.0 * double(part.count()) / double(all.count()))
               : "";
}

/// Adds lines of at most 80 cells, broken at blanks, or inside words that are longer than a line;
/// the first begins with `first`, the others with as many blanks.
void add_wrapped(std::vector<std::string>& lines, const std::string& first, const std::string& text)
{
    const std::string indent(cells(sanitised(first)), ' ');
    const std::string clean = sanitised(text);
    std::string line = first;
    bool empty = true;
    const auto next_line = [&] {
        lines.push_back(line);
        line = indent;
        empty = true;
    };
    for (std::size_t at = 0; at < clean.size();) {
        const std::size_t end = std::min(clean.find(' ', at), clean.size());
        std::string_view word = std::string_view(clean).substr(at, end - at);
        if (!empty && cells(line) + 1 + cells(word) > k_width) {
            next_line();
        }
        line += empty ? "" : " ";
        while (!word.empty()) {
            const std::string_view glyph = take_glyph(word);
            if (cells(line) + cells(glyph) > k_width) {
                next_line();
            }
            line += glyph;
        }
        empty = false;
        at = end + 1;
    }
    lines.push_back(line);
}

int gpus_of(const WholeProfile& whole)
{
    return whole.status.run ? whole.status.run->request.gpus.count * whole.status.run->request.nodes
                            : 0;
}

std::string counted_of(std::size_t count, const std::string& what)
{
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string state_text(const RunStatus& status)
{
    if (status.state == RunState::ended && status.ending && status.run) {
        return ending_text(*status.ending, status.run->request);
    }
    return std::string(word(status.state));
}

/// Each name once, in the order of appearance.
std::vector<std::string> node_names(const Profile& profile)
{
    std::vector<std::string> names;
    for (const auto& link : profile.links) {
        for (const std::string& name : link.nodes) {
            if (std::find(names.begin(), names.end(), name) == names.end()) {
                names.push_back(name);
            }
        }
    }
    return names;
}

std::string model_of(const Profile& profile)
{
    for (const Track& gpu : profile.gpus) {
        if (!gpu.model.empty()) {
            return gpu.model;
        }
    }
    return "";
}

bool is_known(const WholeProfile& whole, std::size_t measure)
{
    return whole.profile && whole.profile->all[measure].known > 0;
}

/// GPU measures of a run without GPUs are not unknown: they do not apply.
bool applies(const WholeProfile& whole, std::size_t measure)
{
    return measure >= k_gpu_measures || gpus_of(whole) > 0;
}

std::string name_of(const Track& gpu, bool several_nodes)
{
    return several_nodes ? fmt::format("{} GPU {}",
                                       gpu.nodes.size() == 1 ? gpu.nodes.front()
                                                             : fmt::format("node {}", gpu.node + 1),
                                       gpu.gpu)
                         : fmt::format("GPU {}", gpu.gpu);
}

Json measure_json(Measure measure, const Measured& values, const std::optional<double>& p95,
                  bool with_p95)
{
    const bool known = values.known > 0;
    const auto number = [&](double value) { return known ? Json(value) : Json(); };
    Json::Members members = {{"name", telemetry::row(measure).name},
                             {"unit", telemetry::row(measure).unit},
                             {"min", number(values.least)},
                             {"mean", number(values.mean())}};
    if (with_p95) {
        members.emplace_back("p95", p95);
    }
    members.emplace_back("max", number(values.most));
    members.emplace_back("known_seconds", std::floor(values.known));
    members.emplace_back("unknown", known ? Json() : Json(word(values.why())));
    return Json::object(std::move(members));
}

Json measures_json(const WholeProfile& whole)
{
    Json::Elements measures;
    for (std::size_t i = 0; whole.profile && i < k_measures; ++i) {
        if (applies(whole, i)) {
            measures.push_back(measure_json(static_cast<Measure>(i), whole.profile->all[i],
                                            whole.profile->quantiles[i].at(0.95), true));
        }
    }
    return Json::array(std::move(measures));
}

Json gpus_json(const WholeProfile& whole)
{
    Json::Elements gpus;
    for (std::size_t at = 0; whole.profile && at < whole.profile->gpus.size(); ++at) {
        const Track& gpu = whole.profile->gpus[at];
        Json::Elements measures;
        for (std::size_t i = 0; i < k_gpu_measures; ++i) {
            measures.push_back(measure_json(static_cast<Measure>(i), gpu.measured[i], {}, false));
        }
        gpus.push_back(Json::object({{"nodes", Json::array(gpu.nodes)},
                                     {"index", gpu.gpu},
                                     {"model", gpu.model.empty() ? Json() : Json(gpu.model)},
                                     {"measures", Json::array(std::move(measures))}}));
    }
    return Json::array(std::move(gpus));
}

Json links_json(const WholeProfile& whole)
{
    Json::Elements links;
    for (std::size_t i = 0; whole.profile && i < whole.profile->links.size(); ++i) {
        const auto& link = whole.profile->links[i];
        links.push_back(Json::object({{"link", link.link.value},
                                      {"from", link.from},
                                      {"to", link.to},
                                      {"nodes", Json::array(link.nodes)},
                                      {"checkpoints", link.saves.size()}}));
    }
    return Json::array(std::move(links));
}

} // namespace

SplitTime split(const WholeProfile& whole)
{
    const auto whole_seconds = [](std::chrono::milliseconds time) {
        return std::chrono::floor<seconds>(time);
    };
    SplitTime split;
    split.all = whole_seconds(whole.gpu_time.allocated());
    split.busy = whole_seconds(whole.gpu_time.busy);
    split.idle = whole_seconds(whole.gpu_time.idle);
    split.unknown = split.all - split.busy - split.idle;
    const auto phases = telemetry::phases_of(
        whole.profile ? whole.profile->phases : telemetry::PhaseTimes{}, whole.gpu_time);
    seconds left = split.idle;
    for (const Phase phase : k_idle_parts) {
        const auto at = static_cast<std::size_t>(phase);
        split.phases[at] = phase == Phase::other_idle ? left : whole_seconds(phases[at]);
        left -= split.phases[at];
    }
    split.phases[static_cast<std::size_t>(Phase::busy)] = split.busy;
    split.phases[static_cast<std::size_t>(Phase::unknown)] = split.unknown;
    return split;
}

std::vector<ProfileAdvice> advice_of(const WholeProfile& whole)
{
    if (!whole.profile || !whole.status.run) {
        return {};
    }
    constexpr double k_mib_per_gib = 1024;
    const Request& request = whole.status.run->request;
    telemetry::Given given{request.nodes, gpus_of(whole), request.cpus, {}};
    if (request.memory_mib && *request.memory_mib > 0) {
        given.ram_gib = static_cast<double>(*request.memory_mib) / k_mib_per_gib;
    }
    return telemetry::advice_of(*whole.profile, whole.gpu_time, given);
}

double known_part(const WholeProfile& whole, Measure measure)
{
    if (!whole.profile || !whole.status.run) {
        return 0;
    }
    double length = 0;
    for (const auto& link : whole.profile->links) {
        length += std::chrono::duration<double>(link.to - link.from).count();
    }
    const bool of_gpus = static_cast<std::size_t>(measure) < k_gpu_measures;
    const double had = length * (of_gpus ? gpus_of(whole) : whole.status.run->request.nodes);
    return had > 0 ? std::min(1.0, (*whole.profile)[measure].known / had) : 0;
}

std::string value_text(Measure measure, double value)
{
    return fmt::format("{:.{}f}", value, telemetry::row(measure).decimals);
}

std::string life_text(const WholeProfile& whole, Time now)
{
    if (!whole.profile) {
        return "has not started";
    }
    const Profile& profile = *whole.profile;
    const bool over = whole.status.state == RunState::ended;
    std::string text = fmt::format("{} to {}", moment_text(profile.from, now),
                                   over ? moment_text(profile.to, now) : "now");
    const auto names = node_names(profile);
    if (names.size() == 1) {
        text += " on " + names.front();
    } else if (!names.empty()) {
        text += fmt::format(" on {}", counted_of(names.size(), "node"));
    }
    const int gpus = gpus_of(whole);
    const std::string model = model_of(profile);
    text += gpus == 0 ? ", no GPU"
                      : fmt::format(", {}{}", counted_of(static_cast<std::size_t>(gpus), "GPU"),
                                    model.empty() ? "" : fmt::format(" ({})", model));
    return text + (profile.links.size() > 1 ? ", " + counted_of(profile.links.size(), "link") : "");
}

report::Table measures_table(const WholeProfile& whole)
{
    report::Table table{{{"measure", "MEASURE"},
                         {"unit", "UNIT"},
                         {"min", "MIN", Column::Align::right},
                         {"mean", "MEAN", Column::Align::right},
                         {"p95", "P95", Column::Align::right},
                         {"max", "MAX", Column::Align::right},
                         {"known", "KNOWN", Column::Align::right}},
                        {}};
    for (std::size_t i = 0; i < k_measures; ++i) {
        if (!is_known(whole, i)) {
            continue;
        }
        const auto measure = static_cast<Measure>(i);
        const auto& row = telemetry::row(measure);
        const Measured& values = whole.profile->all[i];
        const auto p95 = whole.profile->quantiles[i].at(0.95);
        table.rows.push_back({std::string(row.title), std::string(row.unit),
                              value_text(measure, values.least), value_text(measure, values.mean()),
                              p95 ? value_text(measure, *p95) : "",
                              value_text(measure, values.most),
                              fmt::format("{:.0f} %", 100 * known_part(whole, measure))});
    }
    return table;
}

report::Table gpus_table(const WholeProfile& whole)
{
    report::Table table{{{"gpu", "GPU"},
                         {"busy", "BUSY", Column::Align::right},
                         {"memory", "MOST MEMORY", Column::Align::right},
                         {"power", "POWER", Column::Align::right},
                         {"temperature", "HOTTEST", Column::Align::right}},
                        {}};
    if (!whole.profile || whole.profile->gpus.size() < 2) {
        return table;
    }
    const bool several = whole.profile->nodes.size() > 1;
    for (const Track& gpu : whole.profile->gpus) {
        const auto cell = [&](Measure measure, bool most) {
            const Measured& values = gpu.measured[static_cast<std::size_t>(measure)];
            return values.known > 0
                       ? fmt::format("{} {}",
                                     value_text(measure, most ? values.most : values.mean()),
                                     telemetry::row(measure).unit)
                       : std::string("unknown");
        };
        table.rows.push_back({name_of(gpu, several), cell(Measure::busy, false),
                              cell(Measure::memory_used, true), cell(Measure::power, false),
                              cell(Measure::temperature, true)});
    }
    return table;
}

report::Table links_table(const WholeProfile& whole, Time now)
{
    report::Table table{{{"link", "LINK", Column::Align::right},
                         {"began", "BEGAN"},
                         {"took", "TOOK", Column::Align::right},
                         {"checkpoints", "CHECKPOINTS", Column::Align::right},
                         {"nodes", "MEASURED ON", Column::Align::left, Column::Shrink::yes}},
                        {}};
    for (std::size_t i = 0; whole.profile && i < whole.profile->links.size(); ++i) {
        const auto& link = whole.profile->links[i];
        table.rows.push_back({fmt::format("{}", link.link.value), moment_text(link.from, now),
                              hours_text(std::chrono::floor<seconds>(link.to - link.from)),
                              fmt::format("{}", link.saves.size()),
                              link.nodes.empty() ? std::string("no node")
                                                 : fmt::format("{}", fmt::join(link.nodes, ", "))});
    }
    return table;
}

std::vector<std::string> unknown_lines(const WholeProfile& whole)
{
    std::vector<std::string> lines;
    if (!whole.profile || !whole.profile->has_samples()) {
        return lines;
    }
    for (std::size_t reason = 0; reason < k_unknowns; ++reason) {
        std::vector<std::string_view> titles;
        for (std::size_t i = 0; i < k_measures; ++i) {
            if (!is_known(whole, i) && applies(whole, i) &&
                whole.profile->all[i].why() == static_cast<Unknown>(reason)) {
                titles.push_back(telemetry::row(static_cast<Measure>(i)).title);
            }
        }
        if (!titles.empty()) {
            lines.push_back(fmt::format("unknown ({}): {}", describe(static_cast<Unknown>(reason)),
                                        fmt::join(titles, ", ")));
        }
    }
    return lines;
}

std::string nothing_text(const WholeProfile& whole)
{
    if (!whole.profile) {
        return "nothing to measure yet: the run has not started";
    }
    return whole.profile->has_samples()
               ? ""
               : "no samples: nothing was measured, so all of the GPU time is unknown";
}

std::vector<std::string> profile_head(const WholeProfile& whole, Time now)
{
    std::vector<std::string> lines = {"run " + run_title(whole.status)};
    const auto field = [&](std::string_view name, const std::string& text) {
        if (!text.empty()) {
            add_wrapped(lines, fmt::format("  {:<12}", name), text);
        }
    };
    field("state", state_text(whole.status));
    field("ran", whole.profile ? life_text(whole, now) : "");
    for (const auto& [name, text] : training_fields(whole.training, whole.status, now)) {
        field(name, text);
    }
    field("measured", nothing_text(whole));
    const SplitTime time = split(whole);
    if (time.all == seconds(0)) {
        return lines;
    }
    lines.emplace_back();
    const auto row = [&](const std::string& name, seconds part, std::string_view meaning) {
        std::string line =
            fmt::format("{:<22}{:>11}{:>9}", name, hours_text(part), percent_text(part, time.all));
        lines.push_back(meaning.empty() ? line : fmt::format("{}  {}", line, meaning));
    };
    row("GPU time", time.all, "allocated: elapsed time x GPUs");
    row("  busy", time.busy, "");
    row("  idle", time.idle, "");
    for (const Phase phase : k_idle_parts) {
        const seconds part = time.phases[static_cast<std::size_t>(phase)];
        if (part > seconds(0)) {
            row(fmt::format("    {}", telemetry::row(phase).title), part,
                telemetry::row(phase).meaning);
        }
    }
    row("  unknown", time.unknown, "");
    return lines;
}

std::vector<std::string> profile_foot(const WholeProfile& whole)
{
    std::vector<std::string> lines;
    for (const std::string& text : unknown_lines(whole)) {
        add_wrapped(lines, "", text);
    }
    const auto advice = advice_of(whole);
    if (!advice.empty()) {
        if (!lines.empty()) {
            lines.emplace_back();
        }
        lines.emplace_back("advice");
    }
    for (const ProfileAdvice& one : advice) {
        add_wrapped(lines, "  - ", one.text);
    }
    return lines;
}

Json::Members profile_document(const WholeProfile& whole, Time now)
{
    const SplitTime time = split(whole);
    Json::Members phases;
    for (std::size_t i = 0; i < k_phases; ++i) {
        phases.emplace_back(fmt::format("{}_seconds", telemetry::row(static_cast<Phase>(i)).word),
                            time.phases[i]);
    }
    Json::Elements advice;
    for (const ProfileAdvice& one : advice_of(whole)) {
        advice.push_back(Json::object({{"code", one.code}, {"text", one.text}}));
    }
    const auto& profile = whole.profile;
    return {{"run", run_json(whole.status, now)},
            {"from", profile ? Json(profile->from) : Json()},
            {"to", profile ? Json(profile->to) : Json()},
            {"gpu_time", gpu_time_json(whole.gpu_time)},
            {"phases", Json::object(std::move(phases))},
            {"measures", measures_json(whole)},
            {"gpus", gpus_json(whole)},
            {"links", links_json(whole)},
            {"advice", Json::array(std::move(advice))},
            {"progress", progress_json(whole.training, whole.status, now)},
            {"training", training_json(whole.training, now)},
            {"warnings", Json::array(whole.warnings)}};
}

} // namespace gpuq::cli
