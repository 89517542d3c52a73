// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/list_columns.h"

#include "report/ending_text.h"
#include "tui/base/chart.h"
#include "tui/runs_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace gpuq::tui {
namespace {

using report::Cell;
using report::Column;

/// The width of bars and sparklines; in a narrow panel names need the room more.
constexpr int k_graph = 8, k_narrow_graph = 5, k_columns_for_graph = 90;
/// From this width on, names and states have as much room as this.
constexpr int k_columns_for_names = 100;
constexpr std::size_t k_room_for_name = 22, k_room_for_state = 16;
constexpr std::size_t k_indent = 2;

/// When it ends, or is finished; `~` before an estimate.
std::string end_text(const RunRow& run, const Detail* detail, Time now)
{
    if (run.active && detail != nullptr && detail->finish) {
        return "~" + short_clock_text(*detail->finish, now);
    }
    if (run.mark == RunMark::waiting && run.starts) {
        return "from " + short_clock_text(*run.starts, now);
    }
    return !run.ends                 ? "-"
           : run.sweep && run.active ? "~" + short_clock_text(*run.ends, now)
                                     : short_clock_text(*run.ends, now);
}

const Curve* first_curve(const Detail* detail, bool of_training)
{
    if (detail == nullptr) {
        return nullptr;
    }
    const auto found =
        std::find_if(detail->curves.begin(), detail->curves.end(), [&](const Curve& curve) {
            return curve.of_training == of_training && (of_training || curve.unit == "%");
        });
    return found == detail->curves.end() ? nullptr : &*found;
}

/// The course of the main loss and its last value; of a sweep the best value, and the try that has
/// it.
std::string loss_text(const RunRow& run, const Detail* detail, int graph, const Theme& theme)
{
    const auto width = static_cast<std::size_t>(graph);
    if (run.sweep) {
        const auto best = best_of(*run.sweep);
        return best ? fmt::format("{} {} #{}", sparkline(run.sweep->course, width, {}, theme),
                                  short_number(*best), run.sweep->best)
                    : "";
    }
    const Curve* const curve = first_curve(detail, true);
    return curve != nullptr && detail->loss
               ? fmt::format("{} {}", sparkline(curve->dots, width, {}, theme),
                             short_number(*detail->loss))
               : "";
}

/// A sweep can be unfolded to its workers, which are indented.
std::string name_text(const Model& model, const RunRow& run, std::size_t depth)
{
    const std::string indent(k_indent * depth, ' ');
    if (!run.sweep) {
        return indent + (run.sweep_key.empty() ? "" : "  ") + run.name;
    }
    const bool is_open = model.list.unfolded.contains(run.key);
    const bool ascii = model.theme.ascii;
    return fmt::format("{}{} {}", indent,
                       is_open ? ascii ? "-" : "▾"
                       : ascii ? "+"
                               : "▸",
                       run.name);
}

/// A column of the list, and from which width of the panel on it is shown.
struct ListColumn {
    Column column;
    int least_width = 0;
};

/// In a panel of this width. Where it is wide, names and states have room before queue, time and
/// use have.
std::vector<ListColumn> all_columns(int width)
{
    using Align = Column::Align;
    using Shrink = Column::Shrink;
    const bool is_wide = width >= k_columns_for_names;
    return {{{"mark", ""}},
            {{"id", "ID", Align::right}},
            {{.name = "name",
              .title = "NAME",
              .shrink = Shrink::yes,
              .least = is_wide ? k_room_for_name : 0,
              .cut = Column::Cut::middle}},
            {{.name = "state",
              .title = "STATE",
              .shrink = Shrink::yes,
              .least = is_wide ? k_room_for_state : 0}},
            {{"gpus", "GPUS", Align::right}, 76},
            {{"queue", "QUEUE", Align::left, Shrink::no, 6}, 120},
            {{"time", "TIME / LIMIT", Align::left, Shrink::no, 5}, 110},
            {{"progress", "PROGRESS", Align::left, Shrink::no, 2}, 50},
            {{"ends", "ENDS", Align::left, Shrink::no, 3}, 60},
            {{"loss", "LOSS", Align::left, Shrink::no, 1}, 70},
            {{"use", "GPU USE", Align::left, Shrink::no, 4}, 100}};
}

/// In all columns. `graph`: the width of bars and sparklines.
std::vector<Cell> all_cells(const Model& model, const RunRow& run, int graph, std::size_t depth)
{
    const Theme& theme = model.theme;
    const Detail* const detail = detail_of(model, run);
    const Cell::Tone tone = tone_of(run.mark);
    const auto progress = detail != nullptr && detail->progress ? detail->progress : run.part;
    const Curve* const use = first_curve(detail, false);
    const bool is_marked = model.marks.contains(run.key);
    return {Cell((is_marked ? theme.ascii ? "*" : "●" : " ") + std::string(glyph(run.mark, theme)),
                 tone),
            run.sweep ? "sweep" : run.id,
            name_text(model, run, depth),
            Cell(run.state, tone),
            run.gpus,
            run.queue,
            run.time,
            progress && run.active ? fmt::format("{} {:3.0f} %", bar(*progress, graph, theme),
                                                 100 * std::clamp(*progress, 0.0, 1.0))
                                   : "",
            end_text(run, detail, model.now),
            loss_text(run, detail, graph, theme),
            run.active && use != nullptr
                ? sparkline(use->dots, static_cast<std::size_t>(graph), 100, theme)
                : ""};
}

} // namespace

std::vector<Column> list_columns(int width)
{
    std::vector<Column> shown;
    for (ListColumn& one : all_columns(width)) {
        if (width >= one.least_width) {
            shown.push_back(std::move(one.column));
        }
    }
    return shown;
}

std::vector<Cell> list_cells(const Model& model, const RunRow& run, int width, std::size_t depth)
{
    const std::vector<ListColumn> columns = all_columns(width);
    std::vector<Cell> cells =
        all_cells(model, run, width < k_columns_for_graph ? k_narrow_graph : k_graph, depth);
    std::vector<Cell> shown;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (width >= columns[i].least_width) {
            shown.push_back(std::move(cells[i]));
        }
    }
    return shown;
}

const Detail* detail_of(const Model& model, const RunRow& run)
{
    const auto found = model.details.find(run.key);
    return found == model.details.end() ? nullptr : &found->second;
}

std::optional<double> best_of(const Sweep& sweep)
{
    return sweep.best > 0 && sweep.best <= sweep.tries.size() ? sweep.tries[sweep.best - 1].best
                                                              : std::nullopt;
}

} // namespace gpuq::tui
