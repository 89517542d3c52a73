// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/timeline_tab.h"

#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/run_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace gpuq::tui {
namespace {

constexpr int k_lane_label = 12;
/// The axis of a shorter time has seconds.
constexpr std::chrono::minutes k_short{10};
/// More checkpoints without another event between them are two lines: the last and the first.
constexpr int k_most_in_a_row = 3;

struct Lane {
    Event::Kind kind;
    const char* name;
    const char* glyph;
    const char* ascii;
    Style style;
};

std::vector<Lane> lanes()
{
    using Kind = Event::Kind;
    return {{Kind::waiting, "waiting", "░", ".", coloured(k_yellow)},
            {Kind::running, "running", "█", "#", coloured(k_green)},
            {Kind::idle, "GPUs idle", "▒", "i", coloured(k_red)},
            {Kind::checkpoint, "checkpoints", "◆", "c", coloured(k_cyan)},
            {Kind::notice, "notices", "▲", "^", coloured(k_yellow)},
            {Kind::credentials, "credentials", "●", "o", coloured(k_blue)},
            {Kind::ended, "end", "■", "X", bold()}};
}

const Lane& lane_of(const std::vector<Lane>& all, Event::Kind kind)
{
    return *std::find_if(all.begin(), all.end(),
                         [&](const Lane& lane) { return lane.kind == kind; });
}

using Newer = std::vector<Event>::const_reverse_iterator;

/// The number of checkpoints from here on without another event between them.
std::ptrdiff_t checkpoints_from(const Newer& first, const Newer& end)
{
    return std::find_if(first, end,
                        [](const Event& event) { return event.kind != Event::Kind::checkpoint; }) -
           first;
}

Line event_line(const Model& model, const Lane& lane, Time at, const std::string& text, int columns)
{
    return {{fmt::format("{} ", model.theme.ascii ? lane.ascii : lane.glyph), lane.style},
            {fmt::format("{:<20}", moment_text(at, model.now)), dim()},
            {clipped(text, static_cast<std::size_t>(std::max(columns - 22, 1))), {}}};
}

} // namespace

std::vector<Line> timeline_lines(const Model& model, int columns)
{
    const Detail* const detail = selected_detail(model);
    if (detail == nullptr || detail->events.empty()) {
        return {{{detail == nullptr ? k_reading : "nothing is recorded of it", dim()}}};
    }
    const auto& events = detail->events;
    const RunRow* const run = selected_run(model);
    Time begin = events.front().from, end = begin;
    for (const Event& event : events) {
        begin = std::min(begin, event.from);
        end = std::max({end, event.from, event.until.value_or(event.from)});
    }
    if (run != nullptr && run->active) {
        end = std::max(end, model.now);
    }
    const double span = std::max(std::chrono::duration<double>(end - begin).count(), 1.0);
    const int width = std::max(columns - k_lane_label - 1, 4);
    const auto place = [&](Time at) {
        const double share = std::chrono::duration<double>(at - begin).count() / span;
        return std::clamp(static_cast<int>(std::lround(share * (width - 1))), 0, width - 1);
    };
    const std::vector<Lane> all = lanes();
    std::vector<Line> lines;
    for (const Lane& lane : all) {
        std::vector<bool> filled(static_cast<std::size_t>(width));
        bool any = false;
        for (const Event& event : events) {
            if (event.kind == lane.kind) {
                any = true;
                for (int at = place(event.from); at <= place(event.until.value_or(event.from));
                     ++at) {
                    filled[static_cast<std::size_t>(at)] = true;
                }
            }
        }
        if (!any) {
            continue;
        }
        std::string text;
        for (const bool one : filled) {
            text += one ? (model.theme.ascii ? lane.ascii : lane.glyph) : " ";
        }
        lines.push_back(
            {{fmt::format("{:<{}}", lane.name, k_lane_label), dim()}, {text, lane.style}});
    }
    const auto axis_text = end - begin < k_short ? moment_text : clock_text;
    const std::string from = axis_text(begin, model.now), to = axis_text(end, model.now);
    const int gap = std::max(width - static_cast<int>(from.size() + to.size()), 1);
    lines.push_back({{std::string(static_cast<std::size_t>(k_lane_label), ' ') + from +
                          std::string(static_cast<std::size_t>(gap), ' ') + to,
                      dim()}});
    lines.emplace_back();
    for (auto event = events.rbegin(); event != events.rend(); ++event) { // the newest first
        const Lane& lane = lane_of(all, event->kind);
        std::string text = sanitised(event->text);
        if (const auto count = checkpoints_from(event, events.rend()); count > k_most_in_a_row) {
            lines.push_back(event_line(model, lane, event->from, text, columns));
            event += count - 1;
            text = fmt::format("the first of {} checkpoints in a row", count);
        }
        if (event->until) {
            const auto time = std::chrono::floor<std::chrono::seconds>(*event->until - event->from);
            text += fmt::format(" ({})", describe(std::max(time, std::chrono::seconds(0))));
        }
        lines.push_back(event_line(model, lane, event->from, text, columns));
    }
    return lines;
}

} // namespace gpuq::tui
