// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/runs_panel.h"

#include "report/ending_text.h"
#include "report/table.h"
#include "term/sanitise.h"
#include "tui/base/table_lines.h"
#include "tui/layout.h"
#include "tui/list_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace gpuq::tui {
namespace {

using report::Cell;

constexpr std::size_t k_most_to_sort = 1000;

/// A line of the list: a run, or the heading of a group.
struct ListLine {
    std::size_t place = 0; ///< in Model::shown; of a heading, that of the group's first run
    bool is_heading = false;
    std::size_t depth = 0; ///< below a heading: 1
};

const RunRow& run_of(const Model& model, const ListLine& line)
{
    return model.picture.runs[model.shown[line.place]];
}

/// Distinguishes workers below their sweep from those with a line of their own, in the order of
/// the list.
class WorkersBelow {
public:
    bool next(const RunRow& run)
    {
        const bool is_below = !run.sweep_key.empty() && run.sweep_key == m_sweep;
        m_sweep = is_below ? m_sweep : run.sweep ? std::string_view(run.key) : "";
        return is_below;
    }

private:
    std::string_view m_sweep;
};

/// A group of a single run has no heading, and that run is not indented.
std::vector<ListLine> list_lines(const Model& model)
{
    std::vector<ListLine> lines;
    const auto& runs = model.picture.runs;
    std::string group;
    std::size_t first = 0; // line of the group's first run
    std::size_t depth = 0;
    WorkersBelow below;
    for (std::size_t i = 0; i < model.shown.size(); ++i) {
        const bool is_worker = below.next(runs[model.shown[i]]);
        if (model.list.grouped && !is_worker) {
            std::string own = group_of(runs[model.shown[i]].name);
            if (i == 0 || own != group) {
                group = std::move(own);
                first = lines.size();
                depth = 0;
            } else if (depth == 0) {
                depth = 1;
                for (std::size_t line = first; line < lines.size(); ++line) {
                    lines[line].depth = depth;
                }
                lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(first),
                             {lines[first].place, true});
            }
        }
        lines.push_back({i, false, depth});
    }
    return lines;
}

/// `train: 3 running, 9 done, 1 failed`.
std::string heading(const Model& model, std::size_t first)
{
    const auto& runs = model.picture.runs;
    const std::string group = group_of(runs[model.shown[first]].name);
    int counts[6] = {};
    WorkersBelow below;
    for (std::size_t i = first; i < model.shown.size(); ++i) {
        const RunRow& run = runs[model.shown[i]];
        if (below.next(run)) {
            continue; // its sweep is counted
        }
        if (group_of(run.name) != group) {
            break;
        }
        ++counts[static_cast<std::size_t>(run.mark)];
    }
    std::string text = sanitised(group) + ":";
    const char* const names[] = {"waiting", "running", "need attention", "done", "failed", "ended"};
    for (std::size_t i = 0; i < std::size(counts); ++i) {
        if (counts[i] > 0) {
            text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", counts[i], names[i]);
        }
    }
    return text;
}

/// The values by which a run is sorted; unknown ones are last in either direction.
std::optional<double> number_of(const Model& model, const RunRow& run)
{
    const Detail* const detail = detail_of(model, run);
    switch (model.list.sort) {
    case SortBy::progress:
        return detail != nullptr && detail->progress ? detail->progress : run.part;
    case SortBy::loss:
        return run.sweep ? best_of(*run.sweep) : detail != nullptr ? detail->loss : std::nullopt;
    case SortBy::ends: {
        const auto at =
            detail != nullptr && detail->finish && run.active ? detail->finish : run.ends;
        return at ? std::optional(std::chrono::duration<double>(at->time_since_epoch()).count())
                  : std::nullopt;
    }
    case SortBy::state:
        return static_cast<double>(run.mark);
    case SortBy::active:
    case SortBy::newest:
    case SortBy::name:
        break;
    }
    return std::nullopt;
}

/// A loss that is not a number has no place in an order: it counts as unknown.
std::optional<double> finite(std::optional<double> number)
{
    return number && std::isfinite(*number) ? number : std::nullopt;
}

void sort_runs(const Model& model, std::vector<std::size_t>& shown)
{
    const auto& runs = model.picture.runs;
    const bool reversed = model.list.reversed;
    if (model.list.sort == SortBy::active) {
        const auto ended = std::stable_partition(shown.begin(), shown.end(),
                                                 [&](std::size_t at) { return runs[at].active; });
        std::stable_sort(ended, shown.end(), [&](std::size_t one, std::size_t other) {
            return runs[one].ends > runs[other].ends; // the unknown ones are last
        });
    }
    if (model.list.sort == SortBy::active || model.list.sort == SortBy::newest) {
        if (reversed) {
            std::reverse(shown.begin(), shown.end());
        }
        return;
    }
    if (model.list.sort == SortBy::name) {
        std::stable_sort(shown.begin(), shown.end(), [&](std::size_t one, std::size_t other) {
            return reversed ? runs[other].name < runs[one].name : runs[one].name < runs[other].name;
        });
        return;
    }
    std::vector<std::pair<std::optional<double>, std::size_t>> order;
    for (const std::size_t at : shown) {
        order.emplace_back(finite(number_of(model, runs[at])), at);
    }
    std::stable_sort(order.begin(), order.end(), [&](const auto& one, const auto& other) {
        if (!one.first || !other.first) {
            return one.first.has_value() && !other.first;
        }
        return reversed ? *other.first < *one.first : *one.first < *other.first;
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
        shown[i] = order[i].second;
    }
}

/// Whether the panel of this run has the keys: it stays in the list until the user leaves it.
bool is_in_use(const Model& model, const RunRow& run)
{
    return model.panels.focus == Panel::run && run.key == model.selected;
}

/// Moves the workers of sweeps behind these, and leaves out those of folded ones. A worker whose
/// sweep is not in the list has a line of its own.
std::vector<std::size_t> with_workers(const Model& model, std::vector<std::size_t> shown)
{
    const auto& runs = model.picture.runs;
    std::set<std::string_view> sweeps;
    for (const std::size_t at : shown) {
        if (runs[at].sweep) {
            sweeps.insert(runs[at].key);
        }
    }
    std::map<std::string_view, std::vector<std::size_t>> workers; // by sweep
    std::erase_if(shown, [&](std::size_t at) {
        const std::string& sweep = runs[at].sweep_key;
        const bool is_kept = is_in_use(model, runs[at]) && !model.list.unfolded.contains(sweep);
        if (is_kept || !sweeps.contains(sweep)) {
            return false;
        }
        workers[sweep].push_back(at);
        return true;
    });
    if (workers.empty()) {
        return shown;
    }
    std::vector<std::size_t> all;
    for (const std::size_t at : shown) {
        all.push_back(at);
        const auto found = workers.find(runs[at].key);
        if (runs[at].sweep && found != workers.end() &&
            model.list.unfolded.contains(runs[at].key)) {
            all.insert(all.end(), found->second.begin(), found->second.end());
        }
    }
    return all;
}

std::string_view name_of(SortBy sort)
{
    constexpr std::string_view k_names[] = {"active first", "newest", "name", "state",
                                            "progress",     "loss",   "end"};
    return k_names[static_cast<std::size_t>(sort)];
}

/// Which part of which runs is shown.
Line title(const Model& model, std::size_t lines, std::size_t first, std::size_t height)
{
    const ListView& list = model.list;
    const std::size_t all = model.picture.runs.size();
    std::string text = "2 Runs";
    text += model.picture.listed ? "" : " (not updated)";
    text += list.filter.empty()   ? ""
            : model.shown.empty() ? ""
                                  : fmt::format(": {} of {} with '{}'; Esc: all",
                                                model.shown.size(), all, sanitised(list.filter));
    if (lines > height) {
        text += fmt::format("{}{}-{} of {}", list.filter.empty() ? ": " : ", ", first + 1,
                            std::min(first + height, lines), lines);
    }
    std::size_t ended = 0;
    for (const RunRow& run : model.picture.runs) {
        ended += run.active ? 0 : 1;
    }
    if (list.hides_ended && ended > 0) {
        text += fmt::format(", {} ended hidden", ended);
    }
    if (list.sort != SortBy::active || list.reversed) {
        text += fmt::format(", by {}{}", name_of(list.sort), list.reversed ? ", reversed" : "");
    }
    const std::vector<std::size_t> wanted = runs_to_sort(model);
    const auto unread = std::count_if(wanted.begin(), wanted.end(), [&](std::size_t at) {
        return !model.details.contains(model.picture.runs[at].key);
    });
    text += unread > 0 ? fmt::format(", {} not read yet", unread) : "";
    if (!model.marks.empty()) {
        text += fmt::format(", {} marked", model.marks.size());
    }
    return {{text, bold()}};
}

/// Advice for a list without runs.
void draw_empty(Canvas& canvas, const Rect& area, const Model& model)
{
    std::vector<Line> lines;
    if (!model.has_picture) {
        lines = {{{"reading your runs", dim()}}};
    } else if (!model.picture.listed && model.picture.runs.empty()) {
        lines = {{{"your runs can't be read; the first line shows why", {}}}};
    } else if (!model.list.filter.empty()) {
        lines = {
            {{fmt::format("no run has '{}' in its line; Esc: all", sanitised(model.list.filter)),
              {}}}};
    } else if (!model.picture.runs.empty()) {
        lines = {{{"all runs have ended; z shows them", {}}}};
    } else {
        lines = {
            {{"no runs, and none ended within a day", {}}},
            {},
            {{"+                         ", bold()}, {"start one from here", {}}},
            {{"gpuq run -t 2h train.py   ", bold()}, {"start one in a shell", {}}},
            {{"gpuq top --all            ", bold()}, {"show all runs on disk", {}}},
            {{"man gpuq-tutorial         ", bold()}, {"a walk through gpuq in 20 minutes", {}}}};
    }
    for (int i = 0; i < std::min(area.height, static_cast<int>(lines.size())); ++i) {
        canvas.put(area.top + i, area.left, lines[static_cast<std::size_t>(i)], area.width);
    }
}

/// The line of the selected run; 0 without one.
std::size_t selected_line(const Model& model, const std::vector<ListLine>& lines)
{
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (!lines[i].is_heading && run_of(model, lines[i]).key == model.selected) {
            return i;
        }
    }
    return 0;
}

/// Colours bars and the use of GPUs, but no losses: a high one is no alarm.
void shade_use(Canvas& canvas, const Rect& area, const Line& header, const Theme& theme)
{
    const std::string text = text_of(header);
    const std::size_t losses = std::min(text.find("LOSS"), text.size());
    const std::size_t uses = std::min(text.find("GPU USE"), text.size());
    const int end = area.left + area.width;
    const int loss = std::min(area.left + static_cast<int>(losses), end);
    const int use = std::min(area.left + static_cast<int>(uses), end);
    shade(canvas, {area.top, area.left, area.height, loss - area.left}, theme);
    shade(canvas, {area.top, use, area.height, end - use}, theme);
}

} // namespace

report::Cell::Tone tone_of(RunMark mark)
{
    switch (mark) {
    case RunMark::waiting:
    case RunMark::attention:
        return Cell::Tone::warning;
    case RunMark::running:
    case RunMark::done:
        return Cell::Tone::good;
    case RunMark::failed:
        return Cell::Tone::bad;
    case RunMark::ended:
        break;
    }
    return Cell::Tone::dim;
}

std::size_t place_in(std::string_view text, std::string_view sought, std::size_t from)
{
    const auto small = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    const bool exact =
        std::any_of(sought.begin(), sought.end(), [&](char c) { return small(c) != c; });
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(std::min(from, text.size()));
    const auto found =
        std::search(begin, text.end(), sought.begin(), sought.end(), [&](char one, char other) {
            return exact ? one == other : small(one) == other;
        });
    return found == text.end() ? std::string_view::npos
                               : static_cast<std::size_t>(found - text.begin());
}

bool is_in(std::string_view text, std::string_view sought)
{
    return sought.empty() || place_in(text, sought) != std::string_view::npos;
}

bool passes(const RunRow& run, const std::string& filter)
{
    return filter.empty() || is_in(run.name, filter) || is_in(run.id, filter) ||
           is_in(run.state, filter) || is_in(run.gpus, filter) ||
           place_in(run.queue, filter) == 0; // a narrow list does not show it
}

std::string group_of(std::string_view name)
{
    const std::size_t end = name.find_last_not_of("0123456789");
    if (end == std::string_view::npos || end + 1 == name.size()) {
        return std::string(name);
    }
    const std::size_t last = name.find_last_not_of("-_. ", end);
    return std::string(last == std::string_view::npos ? name : name.substr(0, last + 1));
}

std::vector<std::size_t> listed_runs(const Model& model)
{
    const auto& runs = model.picture.runs;
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const bool is_listed =
            passes(runs[i], model.list.filter) && (runs[i].active || !model.list.hides_ended);
        if (is_listed || is_in_use(model, runs[i])) {
            shown.push_back(i);
        }
    }
    sort_runs(model, shown);
    if (model.list.grouped) {
        std::map<std::string, std::size_t> groups; // in the order of their first runs
        for (const std::size_t at : shown) {
            groups.emplace(group_of(runs[at].name), groups.size());
        }
        std::stable_sort(shown.begin(), shown.end(), [&](std::size_t one, std::size_t other) {
            return groups.at(group_of(runs[one].name)) < groups.at(group_of(runs[other].name));
        });
    }
    return with_workers(model, std::move(shown));
}

std::size_t first_row_shown(const Model& model)
{
    const std::vector<ListLine> lines = list_lines(model);
    const auto height = static_cast<std::size_t>(rows_for_runs(model));
    const std::size_t at = selected_line(model, lines);
    const std::size_t last_first = lines.size() > height ? lines.size() - height : 0;
    return std::max(std::min({model.list.first_row, last_first, at}),
                    at + 1 > height ? at + 1 - height : 0);
}

std::vector<std::size_t> runs_on_screen(const Model& model)
{
    const std::vector<ListLine> lines = list_lines(model);
    const auto height = static_cast<std::size_t>(rows_for_runs(model));
    std::vector<std::size_t> runs;
    for (std::size_t i = model.list.first_row;
         i < std::min(model.list.first_row + height, lines.size()); ++i) {
        if (!lines[i].is_heading) {
            runs.push_back(model.shown[lines[i].place]);
        }
    }
    return runs;
}

std::vector<std::size_t> runs_to_sort(const Model& model)
{
    const SortBy sort = model.list.sort;
    const bool of_active = sort == SortBy::progress || sort == SortBy::ends;
    if (sort != SortBy::loss && !of_active) {
        return {};
    }
    std::vector<std::size_t> wanted;
    for (const std::size_t at : model.shown) {
        const RunRow& run = model.picture.runs[at];
        if (!run.plain && !run.sweep && (run.active || !of_active)) {
            wanted.push_back(at);
        }
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.resize(std::min(wanted.size(), k_most_to_sort));
    return wanted;
}

void draw_runs(Canvas& canvas, const Rect& panel, const Model& model)
{
    const bool is_framed = panel.height > 2 && !areas_of(model).tiny;
    const Rect area = is_framed ? inside(panel) : panel;
    const std::vector<ListLine> lines = list_lines(model);
    const auto height = static_cast<std::size_t>(std::max(area.height - 1, 1));
    const std::size_t first = first_row_shown(model);
    const bool focused = model.panels.focus == Panel::runs;
    if (is_framed) {
        draw_frame(canvas, panel, title(model, lines.size(), first, height), {}, focused,
                   model.theme);
    }
    if (lines.empty()) {
        return draw_empty(canvas, area, model);
    }
    report::Table table{list_columns(area.width), {}};
    for (std::size_t i = first; i < std::min(first + height, lines.size()); ++i) {
        if (!lines[i].is_heading) {
            table.rows.push_back(
                list_cells(model, run_of(model, lines[i]), area.width, lines[i].depth));
        }
    }
    const std::vector<Line> drawn = table_lines(table, area.width);
    canvas.put(area.top, area.left, drawn.front(), area.width);
    std::size_t next = 1;
    for (std::size_t i = first; i < std::min(first + height, lines.size()); ++i) {
        const int row = area.top + 1 + static_cast<int>(i - first);
        if (row > area.bottom()) {
            break;
        }
        if (lines[i].is_heading) {
            canvas.put(row, area.left, Line{{heading(model, lines[i].place), bold()}}, area.width);
            continue;
        }
        if (next < drawn.size()) {
            canvas.put(row, area.left, drawn[next++], area.width);
        }
        if (run_of(model, lines[i]).key == model.selected) {
            canvas.tint(row, area.left, area.width, focused ? marked() : bold());
        }
    }
    shade_use(canvas, area, drawn.front(), model.theme);
}

std::string run_at(const Model& model, const Rect& panel, int row)
{
    const std::vector<ListLine> lines = list_lines(model);
    const int line = row - inside(panel).top - 1 + static_cast<int>(first_row_shown(model));
    const bool is_run = row > inside(panel).top && row <= inside(panel).bottom() && line >= 0 &&
                        line < static_cast<int>(lines.size()) &&
                        !lines[static_cast<std::size_t>(line)].is_heading;
    return is_run ? run_of(model, lines[static_cast<std::size_t>(line)]).key : "";
}

} // namespace gpuq::tui
