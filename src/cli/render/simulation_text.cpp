// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/simulation_text.h"

#include "core/number.h"
#include "report/ending_text.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

namespace gpuq::cli {
namespace {

using report::Json;
using sim::Measures;
using sim::NamedWaits;
using sim::Waits;

constexpr std::size_t k_most_users = 10; ///< in a table

std::string percent(double part)
{
    return fmt::format("{:.1f} %", 100 * part);
}

/// A row of the table: one figure of a simulation, compared with the first simulation.
struct Row {
    std::string title;
    std::function<std::string(const Simulated& one, const Simulated& first)> text;
    /// Shown only if it is true for a simulation; unset: always.
    std::function<bool(const Simulated& one)> matters = {};
};

/// `-` if no run has started.
std::string text_of(const Waits& waits, const std::function<std::string()>& text)
{
    return waits.within_target ? text() : std::string("-");
}

std::vector<Row> rows()
{
    const auto wait = [](const Waits& waits, sim::Seconds seconds) {
        return text_of(waits, [&] { return describe(seconds); });
    };
    return {
        {"runs of at most 2 h",
         [](const auto& one, const auto&) { return std::to_string(one.measures.short_runs.runs); }},
        {"  half wait at most",
         [wait](const auto& one, const auto&) {
             return wait(one.measures.short_runs, one.measures.short_runs.p50);
         }},
        {"  95 % wait at most",
         [wait](const auto& one, const auto&) {
             return wait(one.measures.short_runs, one.measures.short_runs.p95);
         }},
        {"  longest wait",
         [wait](const auto& one, const auto&) {
             return wait(one.measures.short_runs, one.measures.short_runs.max);
         }},
        {"  start within 2 h",
         [](const auto& one, const auto&) {
             const Waits& waits = one.measures.short_runs;
             return text_of(waits, [&] { return percent(*waits.within_target); });
         }},
        {"longer runs",
         [](const auto& one, const auto&) { return std::to_string(one.measures.long_runs.runs); }},
        {"  wait on average, all links",
         [wait](const auto& one, const auto&) {
             const Waits& waits = one.measures.long_runs;
             return wait(waits, sim::Seconds{static_cast<std::int64_t>(waits.mean_in_all)});
         }},
        {"  of that before",
         [](const auto& one, const auto& first) {
             const Waits& before = first.measures.long_runs;
             const Waits& waits = one.measures.long_runs;
             return text_of(before, [&] {
                 return text_of(waits, [&] { return percent(sim::harm(before, waits)); });
             });
         }},
        {"GPU time used", [](const auto& one, const auto&) { return percent(one.measures.use); }},
        {"  idle while a run waits",
         [](const auto& one, const auto&) { return percent(one.measures.idle_while_waiting); }},
        {"  idle where a waiting run may go",
         [](const auto& one, const auto&) { return percent(one.measures.idle_while_allowed); }},
        {"runs that had to leave for an owner",
         [](const auto& one, const auto&) { return std::to_string(one.measures.preempted); }},
        {"runs whose node failed",
         [](const auto& one, const auto&) { return std::to_string(one.measures.failed); },
         [](const auto& one) { return one.measures.failed > 0; }},
        {"runs stopped at their time limit",
         [](const auto& one, const auto&) { return std::to_string(one.measures.stopped); },
         [](const auto& one) { return one.measures.stopped > 0; }},
        {"runs refused",
         [](const auto& one, const auto&) { return std::to_string(one.refused.size()); }},
    };
}

Json json_of(const Waits& waits)
{
    const auto known = [&](const auto& figure) {
        return waits.within_target ? Json(figure) : Json();
    };
    return Json::object({{"runs", waits.runs},
                         {"never_started", waits.never},
                         {"p50", known(waits.p50)},
                         {"p95", known(waits.p95)},
                         {"max", known(waits.max)},
                         {"mean", known(waits.mean)},
                         {"mean_all_links", known(waits.mean_in_all)},
                         {"within_target", waits.within_target}});
}

/// The number of refused runs by reason.
std::map<std::string, std::size_t> refused_by(const Simulated& one)
{
    std::map<std::string, std::size_t> runs;
    for (const auto& [index, why] : one.refused) {
        ++runs[why];
    }
    return runs;
}

Json json_of(const std::vector<NamedWaits>& groups, const char* what)
{
    Json::Elements rows;
    for (const NamedWaits& group : groups) {
        rows.push_back(Json::object({{what, group.name.empty() ? Json() : Json(group.name)},
                                     {"waits", json_of(group.waits)}}));
    }
    return Json::array(std::move(rows));
}

Json json_of(const Simulated& one)
{
    const Measures& measures = one.measures;
    Json::Elements rules;
    for (const auto& [why, runs] : refused_by(one)) {
        rules.push_back(Json::object({{"runs", runs}, {"why", why}}));
    }
    return Json::object({{"name", one.name},
                         {"short", json_of(measures.short_runs)},
                         {"long", json_of(measures.long_runs)},
                         {"partitions", json_of(measures.partitions, "partition")},
                         {"users", json_of(measures.users, "user")},
                         {"use", measures.use},
                         {"idle_while_waiting", measures.idle_while_waiting},
                         {"idle_while_allowed", measures.idle_while_allowed},
                         {"preempted", measures.preempted},
                         {"failed", measures.failed},
                         {"stopped", measures.stopped},
                         {"refused", one.refused.size()},
                         {"refused_by", Json::array(std::move(rules))},
                         {"broken_targets", broken_json(one)}});
}

} // namespace

report::Table simulation_table(const std::vector<Simulated>& all)
{
    report::Table table;
    table.columns.push_back({"what", ""});
    for (const Simulated& one : all) {
        const std::string title = sanitised(one.name); // a file name can contain anything
        table.columns.push_back({title, title, report::Column::Align::right});
    }
    for (const Row& row : rows()) {
        if (row.matters && std::none_of(all.begin(), all.end(), row.matters)) {
            continue;
        }
        std::vector<report::Cell> cells{row.title};
        for (const Simulated& one : all) {
            cells.emplace_back(row.text(one, all.front()));
        }
        table.rows.push_back(std::move(cells));
    }
    return table;
}

report::Table partitions_table(const std::vector<Simulated>& all)
{
    using Align = report::Column::Align;
    report::Table table;
    table.columns = {{"partition", "PARTITION"},
                     {"runs", "RUNS", Align::right},
                     {"p50", "HALF WAIT", Align::right},
                     {"p95", "95 % WAIT", Align::right},
                     {"max", "LONGEST", Align::right}};
    for (const NamedWaits& one : all.back().measures.partitions) {
        table.rows.push_back({sanitised(one.name), std::to_string(one.waits.runs),
                              describe(one.waits.p50), describe(one.waits.p95),
                              describe(one.waits.max)});
    }
    return table;
}

report::Table users_table(const std::vector<Simulated>& all)
{
    report::Table table;
    table.columns = {{"user", "USER"}, {"runs", "RUNS", report::Column::Align::right}};
    for (const Simulated& one : all) {
        const std::string title = "95 % WAIT, " + sanitised(one.name);
        table.columns.push_back({title, title, report::Column::Align::right});
    }
    std::vector<NamedWaits> users = all.back().measures.users;
    std::erase_if(users, [](const NamedWaits& user) { return user.name.empty(); });
    std::stable_sort(users.begin(), users.end(), [](const NamedWaits& a, const NamedWaits& b) {
        return a.waits.p95 > b.waits.p95;
    });
    users.resize(std::min(users.size(), k_most_users));
    for (const NamedWaits& user : users) {
        std::vector<report::Cell> cells{sanitised(user.name), std::to_string(user.waits.runs)};
        for (const Simulated& one : all) {
            const auto& there = one.measures.users;
            const auto found =
                std::find_if(there.begin(), there.end(),
                             [&](const NamedWaits& other) { return other.name == user.name; });
            const bool known = found != there.end() && found->waits.within_target;
            cells.emplace_back(known ? describe(found->waits.p95) : "-");
        }
        table.rows.push_back(std::move(cells));
    }
    return table;
}

Json::Members simulation_document(const std::vector<Simulated>& all, const std::string& trace,
                                  const LeftOut& left_out)
{
    Json::Elements courses;
    for (const Simulated& one : all) {
        courses.push_back(json_of(one));
    }
    return {{"trace", trace},
            {"left_out", Json::object({{"without_gpus", left_out.without_gpus},
                                       {"never_started", left_out.never_started},
                                       {"other_shares", left_out.other_shares}})},
            {"courses", Json::array(std::move(courses))}};
}

std::string left_out_text(const std::string& trace, const LeftOut& left_out)
{
    std::vector<std::string> parts;
    if (left_out.without_gpus > 0) {
        parts.push_back(counted(left_out.without_gpus, "job") + " without GPUs");
    }
    if (left_out.other_shares > 0) {
        parts.push_back(counted(left_out.other_shares, "job") +
                        " with gres/mps or shares on several nodes");
    }
    if (left_out.never_started > 0) {
        parts.push_back(counted(left_out.never_started, "job") + " that never started");
    }
    return parts.empty()
               ? std::string()
               : fmt::format("{}: left out: {}\n", sanitised(trace), fmt::join(parts, ", "));
}

Json broken_json(const Simulated& one)
{
    Json::Elements broken;
    for (const sim::BrokenTarget& target : one.broken) {
        broken.push_back(Json::object({{"queue", target.queue},
                                       {"percent", target.percent},
                                       {"target", target.target},
                                       {"wait", target.wait},
                                       {"line", target.line}}));
    }
    return Json::array(std::move(broken));
}

std::string broken_text(const Simulated& one)
{
    std::string text;
    for (const sim::BrokenTarget& broken : one.broken) {
        const std::string whose = broken.percent == 100
                                      ? std::string("no run should wait longer than")
                                      : fmt::format("{} % should wait at most", broken.percent);
        const std::string wait = broken.wait ? fmt::format("it would be {}", describe(*broken.wait))
                                             : std::string("runs would never start");
        text += fmt::format("{}:{}: queue {}: {} {}; {}\n", sanitised(one.name), broken.line,
                            sanitised(broken.queue), whose, describe(broken.target), wait);
    }
    return text;
}

std::string refused_text(const Simulated& one)
{
    std::string text;
    for (const auto& [why, count] : refused_by(one)) {
        text += fmt::format("{}: {} refused: {}\n", sanitised(one.name), counted(count, "run"),
                            sanitised(why));
    }
    return text;
}

} // namespace gpuq::cli
