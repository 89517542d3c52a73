// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/board_view.h"

#include "report/ending_text.h"
#include "report/table.h"
#include "term/sanitise.h"
#include "tui/base/scatter.h"
#include "tui/base/table_lines.h"
#include "tui/layout.h"
#include "tui/runs_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace gpuq::tui {
namespace {

using report::Cell;
using report::Column;

constexpr int k_bar = 24;
constexpr int k_header = 1;
constexpr std::size_t k_spark = 8, k_longest_title = 16;
/// Less has no plot.
constexpr int k_rows_for_plot = 15;
/// Parameters beyond these are dropped before the curve.
constexpr std::size_t k_main_parameters = 3;

const Sweep* selected_sweep(const Model& model)
{
    const RunRow* const run = selected_run(model);
    return run == nullptr ? nullptr : run->sweep.get();
}

/// The parts of the panel.
struct Parts {
    Rect facts, tries, plot; ///< a plot without rows is not shown
};

Parts parts_of(const Model& model, const Rect& area)
{
    const Sweep* const sweep = selected_sweep(model);
    const int wanted = sweep == nullptr ? 0 : static_cast<int>(sweep->tries.size()) + k_header;
    const int facts = area.height >= 8 ? 2 : area.height >= 5 ? 1 : 0;
    int plot = 0;
    if (area.height >= k_rows_for_plot && sweep != nullptr && !sweep->parameters.empty()) {
        const int rest = area.height - facts;
        plot = std::max(rest * 2 / 5, rest - wanted);
    }
    const int tries = std::max(area.height - facts - plot, 1);
    return {{area.top, area.left, facts, area.width},
            {area.top + facts, area.left, tries, area.width},
            {area.top + facts + tries, area.left, plot, area.width}};
}

std::size_t rows_for_tries(const Model& model)
{
    return static_cast<std::size_t>(
        std::max(parts_of(model, area_of_tab(model)).tries.height - k_header, 1));
}

std::chrono::seconds time_of(const TryRow& entry, Time now)
{
    std::chrono::duration<double> used = entry.used;
    if (entry.since && *entry.since < now) {
        used += entry.gpus * std::chrono::duration<double>(now - *entry.since);
    }
    return std::chrono::floor<std::chrono::seconds>(used);
}

std::string number_or_dash(const std::optional<double>& value)
{
    return value ? fmt::format("{:.5g}", *value) : "-";
}

std::vector<Column> columns_of(const Sweep& sweep)
{
    using Align = Column::Align;
    using Shrink = Column::Shrink;
    std::vector<Column> columns{{"mark", ""},
                                {"rank", "#", Align::right, Shrink::no, 4},
                                {"try", "TRY", Align::right},
                                {"state", "STATE"}};
    for (std::size_t i = 0; i < sweep.parameters.size(); ++i) {
        const int drop = i < k_main_parameters ? static_cast<int>(i) + 1 : 7;
        columns.push_back({.name = fmt::format("{}", i),
                           .title = clipped(sanitised(sweep.parameters[i]), k_longest_title),
                           .shrink = Shrink::first,
                           .drop = drop,
                           .cut = Column::Cut::middle});
    }
    columns.push_back({"best", "BEST", Align::right});
    columns.push_back({"last", "LAST", Align::right, Shrink::no, 10});
    columns.push_back({"steps", "STEPS", Align::right, Shrink::no, 8});
    columns.push_back({"curve", "CURVE", Align::left, Shrink::no, 6});
    columns.push_back({"time", "GPU TIME", Align::right, Shrink::no, 9});
    return columns;
}

std::vector<Cell> cells_of(const Model& model, const Sweep& sweep, const TryRow& entry)
{
    const Theme& theme = model.theme;
    const auto found = model.details.find(key_of_try(model, entry.number));
    const Detail* const detail = found == model.details.end() ? nullptr : &found->second;
    const bool is_marked = model.board.marks.contains(entry.number);
    const Cell::Tone tone = tone_of(entry.mark);
    std::vector<Cell> cells{
        Cell((is_marked ? theme.ascii ? "*" : "●" : " ") + std::string(glyph(entry.mark, theme)),
             tone),
        entry.rank > 0 ? std::to_string(entry.rank) : "-", std::to_string(entry.number),
        Cell(entry.state, tone)};
    for (const std::string& value : entry.values) {
        cells.emplace_back(value);
    }
    cells.resize(4 + sweep.parameters.size(), Cell("-"));
    cells.emplace_back(number_or_dash(entry.best),
                       entry.number == sweep.best ? Cell::Tone::good : Cell::Tone::plain);
    cells.emplace_back(number_or_dash(entry.last));
    cells.emplace_back(detail != nullptr && detail->step ? std::to_string(*detail->step) : "-");
    cells.emplace_back(detail != nullptr && !detail->curves.empty()
                           ? sparkline(detail->curves.front().dots, k_spark, {}, theme)
                           : "");
    const bool has_begun = entry.since || entry.used.count() > 0;
    cells.emplace_back(has_begun ? describe(time_of(entry, model.now)) : "-");
    return cells;
}

void draw_facts(Canvas& canvas, const Rect& area, const Model& model, const RunRow& run)
{
    for (int row = 0; row < area.height; ++row) {
        Line line;
        if (row == 0) {
            line = tries_bar(*run.sweep, std::min(k_bar, area.width / 4), model.theme);
            line.push_back({" ", {}});
        }
        const auto fact = static_cast<std::size_t>(row);
        line.push_back({fact < run.facts.size() ? sanitised(run.facts[fact]) : "", {}});
        canvas.put(area.top + row, area.left, line, area.width);
    }
}

void draw_tries(Canvas& canvas, const Rect& area, const Model& model, const Sweep& sweep)
{
    const BoardView& board = model.board;
    report::Table table{columns_of(sweep), {}};
    const std::size_t first = first_try_shown(model);
    const std::size_t end = std::min(first + rows_for_tries(model), board.order.size());
    for (std::size_t i = first; i < end; ++i) {
        table.rows.push_back(cells_of(model, sweep, sweep.tries[board.order[i]]));
    }
    canvas.put_lines(area, table_lines(table, area.width), 0);
    if (board.order.empty()) {
        canvas.put(area.top, area.left, Line{{"no tries", dim()}}, area.width);
        return;
    }
    const int row = area.top + k_header + static_cast<int>(place_of_try(model) - first);
    if (row <= area.bottom()) {
        canvas.tint(row, area.left, area.width,
                    model.panels.focus == Panel::run ? marked() : bold());
    }
}

void draw_plot(Canvas& canvas, const Rect& area, const Model& model, const Sweep& sweep)
{
    const std::size_t parameter = std::min(model.board.parameter, sweep.parameters.size() - 1);
    const TryRow* const selected = selected_try(model);
    using Kind = Scatter::Point::Kind;
    Scatter scatter{sweep.parameters[parameter],
                    "best " + sweep.metric,
                    model.charts.view.logarithmic ? "log scale" : "",
                    model.charts.view.logarithmic,
                    {}};
    for (const TryRow& entry : sweep.tries) {
        if (parameter < entry.values.size()) {
            scatter.points.push_back({entry.values[parameter], entry.best,
                                      entry.number == sweep.best ? Kind::best
                                      : &entry == selected       ? Kind::selected
                                      : entry.since              ? Kind::running
                                                                 : Kind::other});
        }
    }
    draw_scatter(canvas, area, std::move(scatter), model.theme);
}

std::string_view name_of(TriesBy sort)
{
    constexpr std::string_view k_names[] = {"metric", "number", "GPU time"};
    return k_names[static_cast<std::size_t>(sort)];
}

/// The values by which a try is sorted; those without are last in either direction.
std::optional<double> number_of(const TryRow& entry, TriesBy sort, Time now)
{
    switch (sort) {
    case TriesBy::metric:
        return entry.rank > 0 ? std::optional(static_cast<double>(entry.rank)) : std::nullopt;
    case TriesBy::number:
        return static_cast<double>(entry.number);
    case TriesBy::time:
        break;
    }
    const auto time = time_of(entry, now);
    return time.count() > 0 ? std::optional(-static_cast<double>(time.count())) : std::nullopt;
}

/// Running tries first, then waiting ones.
int order_without_value(const TryRow& entry)
{
    return entry.mark == RunMark::running ? 0 : entry.active ? 1 : 2;
}

} // namespace

std::vector<std::size_t> ordered_tries(const Model& model)
{
    const Sweep* const sweep = selected_sweep(model);
    if (sweep == nullptr) {
        return {};
    }
    std::vector<std::optional<double>> numbers;
    for (const TryRow& entry : sweep->tries) {
        numbers.push_back(number_of(entry, model.board.sort, model.now));
    }
    std::vector<std::size_t> order(sweep->tries.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
        if (!numbers[one] && !numbers[other]) {
            return order_without_value(sweep->tries[one]) <
                   order_without_value(sweep->tries[other]);
        }
        if (!numbers[one] || !numbers[other]) {
            return numbers[one].has_value();
        }
        return model.board.reversed ? *numbers[other] < *numbers[one]
                                    : *numbers[one] < *numbers[other];
    });
    return order;
}

std::size_t place_of_try(const Model& model)
{
    const Sweep* const sweep = selected_sweep(model);
    const auto& order = model.board.order;
    for (std::size_t i = 0; sweep != nullptr && i < order.size(); ++i) {
        if (sweep->tries[order[i]].number == model.board.selected) {
            return i;
        }
    }
    return 0;
}

std::size_t first_try_shown(const Model& model)
{
    const std::size_t rows = rows_for_tries(model);
    const std::size_t count = model.board.order.size();
    const std::size_t at = place_of_try(model);
    const std::size_t last_first = count > rows ? count - rows : 0;
    return std::max(std::min({model.board.first_row, last_first, at}),
                    at + 1 > rows ? at + 1 - rows : 0);
}

std::vector<std::size_t> tries_shown(const Model& model)
{
    std::vector<std::size_t> numbers;
    const Sweep* const sweep = selected_sweep(model);
    const auto& order = model.board.order;
    const std::size_t first = first_try_shown(model);
    for (std::size_t i = first;
         sweep != nullptr && i < std::min(first + rows_for_tries(model), order.size()); ++i) {
        numbers.push_back(sweep->tries[order[i]].number);
    }
    return numbers;
}

std::string board_title(const Model& model)
{
    const BoardView& board = model.board;
    const std::size_t rows = rows_for_tries(model), count = board.order.size();
    std::string text;
    if (count > rows) {
        text = fmt::format("{}-{} of {}, ", board.first_row + 1,
                           std::min(board.first_row + rows, count), count);
    }
    text += fmt::format("by {}{}", name_of(board.sort), board.reversed ? ", reversed" : "");
    return text + (board.marks.empty() ? "" : fmt::format(", {} marked", board.marks.size()));
}

void draw_board(Canvas& canvas, const Rect& area, const Model& model)
{
    const RunRow* const run = selected_run(model);
    if (run == nullptr || !run->sweep) {
        return;
    }
    const Parts parts = parts_of(model, area);
    draw_facts(canvas, parts.facts, model, *run);
    draw_tries(canvas, parts.tries, model, *run->sweep);
    if (parts.plot.height > 0) {
        draw_plot(canvas, parts.plot, model, *run->sweep);
    }
}

std::size_t try_at(const Model& model, int row)
{
    const Parts parts = parts_of(model, area_of_tab(model));
    const int line = row - parts.tries.top - k_header;
    const std::vector<std::size_t> numbers = tries_shown(model);
    return line >= 0 && line < static_cast<int>(numbers.size())
               ? numbers[static_cast<std::size_t>(line)]
               : 0;
}

Line tries_bar(const Sweep& sweep, int width, const Theme& theme)
{
    const std::size_t all = std::max<std::size_t>(sweep.tries.size(), 1);
    const struct {
        std::size_t count;
        const char *glyph, *ascii;
        Style style;
    } k_parts[] = {{sweep.done, "█", "#", coloured(k_green)},
                   {sweep.failed, "▚", "x", coloured(k_red)},
                   {sweep.stopped, "▓", "-", dim()},
                   {sweep.running, "▒", ">", coloured(k_yellow)},
                   {all, "░", ".", dim()}};
    Line line;
    std::size_t before = 0, used = 0;
    for (const auto& part : k_parts) {
        before = std::min(before + part.count, all);
        const std::size_t end = before * static_cast<std::size_t>(std::max(width, 0)) / all;
        std::string text;
        for (; used < end; ++used) {
            text += theme.ascii ? part.ascii : part.glyph;
        }
        line.push_back({text, part.style});
    }
    return line;
}

std::string values_text(const Sweep& sweep, const TryRow& entry)
{
    std::string text;
    for (std::size_t i = 0; i < std::min(sweep.parameters.size(), entry.values.size()); ++i) {
        text += fmt::format("{}{}={}", i == 0 ? "" : " ", sweep.parameters[i], entry.values[i]);
    }
    return text;
}

} // namespace gpuq::tui
