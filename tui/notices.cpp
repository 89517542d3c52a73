// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpuq::tui {
namespace {

using namespace std::chrono_literals;

constexpr auto k_toast = 8s;
/// More events at once are one: each rings the bell and may execute a command.
constexpr std::size_t k_most_events = 3;

/// The event of a run since the picture before, if there is one.
std::optional<Notify> event_of(const RunRow& was, const RunRow& run)
{
    const std::string name =
        run.sweep ? "sweep " + run.name
                  : fmt::format("{} {} ({})", run.plain ? "job" : "run", run.id, run.name);
    if (!run.sweep_key.empty()) {
        return std::nullopt; // the events of the sweep are reported
    }
    if (was.active && !run.active) {
        return Notify{name + ": " + run.state, run.mark, run.key, run.id};
    }
    if (!was.running && run.running) {
        return Notify{name + " has started", RunMark::running, run.key, run.id};
    }
    if (was.mark != RunMark::attention && run.mark == RunMark::attention) {
        return Notify{name + " needs attention", run.mark, run.key, run.id};
    }
    return std::nullopt;
}

/// `12 runs: 2 failed, 9 done, 1 started`, with the mark of the most important ones.
Notify summary_of(const std::vector<Notify>& events)
{
    constexpr std::array<std::pair<RunMark, std::string_view>, 6> k_kinds = {
        {{RunMark::failed, "failed"},
         {RunMark::attention, "needing attention"},
         {RunMark::done, "done"},
         {RunMark::ended, "ended"},
         {RunMark::running, "started"},
         {RunMark::waiting, "waiting"}}};
    Notify all;
    all.text = fmt::format("{} runs:", events.size());
    bool is_first = true;
    for (const auto& [mark, text] : k_kinds) {
        const auto count =
            std::count_if(events.begin(), events.end(),
                          [mark = mark](const auto& one) { return one.mark == mark; });
        if (count > 0) {
            all.text += fmt::format("{} {} {}", is_first ? "" : ",", count, text);
            all.mark = is_first ? mark : all.mark;
            is_first = false;
        }
    }
    for (const Notify& one : events) {
        all.id += (all.id.empty() ? "" : " ") + one.id;
    }
    return all;
}

} // namespace

void notice_changes(Change change, const Picture& next)
{
    std::unordered_map<std::string_view, const RunRow*> before;
    for (const RunRow& run : change.model.picture.runs) {
        before.emplace(run.key, &run);
    }
    std::vector<Notify> events;
    for (const RunRow& run : next.runs) {
        const auto old = before.find(run.key);
        if (auto event = old == before.end() ? std::nullopt : event_of(*old->second, run)) {
            events.push_back(*std::move(event));
        }
    }
    if (events.size() > k_most_events) {
        events = {summary_of(events)};
    }
    for (Notify& event : events) {
        add_toast(change.model, event.text, event.mark, k_toast);
        change.add(std::move(event));
    }
}

} // namespace gpuq::tui
