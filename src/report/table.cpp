// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/table.h"

#include "core/strings.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>

namespace gpuq::report {
namespace {

constexpr std::size_t k_gap = 2;
constexpr std::size_t k_narrowest = 6;
constexpr std::size_t k_enough = 11; ///< width down to which a `first` column is cut

using Widths = std::vector<std::size_t>;

Table with_clean_texts(Table table)
{
    for (auto& row : table.rows) {
        for (Cell& cell : row) {
            cell.text = sanitised(cell.text);
        }
    }
    return table;
}

Widths natural_widths(const Table& table, const TableStyle& style)
{
    Widths widths;
    for (const Column& column : table.columns) {
        widths.push_back(style.header ? cells(column.title) : 0);
    }
    for (const auto& row : table.rows) {
        for (std::size_t i = 0; i < widths.size(); ++i) {
            widths[i] = std::max(widths[i], cells(row[i].text));
        }
    }
    return widths;
}

std::size_t total(const Widths& widths)
{
    const std::size_t gaps = widths.empty() ? 0 : (widths.size() - 1) * k_gap;
    return std::accumulate(widths.begin(), widths.end(), gaps);
}

std::size_t narrowest(const Column& column)
{
    return std::max(k_narrowest, cells(column.title));
}

std::size_t least_width(const Column& column)
{
    return std::max(narrowest(column), column.least);
}

/// The column to make narrower next, or none.
std::size_t* next_to_shrink(const Table& table, Widths& widths,
                            std::size_t (*least)(const Column& column))
{
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        const Column& column = table.columns[i];
        if (column.shrink == Column::Shrink::first && widths[i] > k_enough) {
            return &widths[i];
        }
        if (column.shrink != Column::Shrink::no && widths[i] > least(column) &&
            (widest == nullptr || widths[i] > *widest)) {
            widest = &widths[i];
        }
    }
    return widest;
}

/// The column to drop first if the table can't be made narrow enough, or none.
std::optional<std::size_t> to_drop(const Table& table, Widths widths, const TableStyle& style)
{
    std::size_t first = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        if (table.columns[i].shrink != Column::Shrink::no) {
            widths[i] = std::min(widths[i], least_width(table.columns[i]));
        }
        first = table.columns[i].drop > table.columns[first].drop ? i : first;
    }
    const bool too_wide = style.width && total(widths) > *style.width;
    return too_wide && table.columns[first].drop > 0 ? std::optional(first) : std::nullopt;
}

void drop(Table& table, std::size_t column)
{
    const auto at = static_cast<std::ptrdiff_t>(column);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) {
        row.erase(row.begin() + at);
    }
}

Table fit_columns(Table table, const TableStyle& style)
{
    while (const auto column = to_drop(table, natural_widths(table, style), style)) {
        drop(table, *column);
    }
    return table;
}

Widths fitted(const Table& table, Widths widths, const TableStyle& style)
{
    for (const auto least : {least_width, narrowest}) {
        while (style.width && total(widths) > *style.width) {
            std::size_t* const next = next_to_shrink(table, widths, least);
            if (next == nullptr) {
                break;
            }
            --*next;
        }
    }
    return widths;
}

std::string_view escape_of(Cell::Tone tone, bool light)
{
    switch (tone) {
    case Cell::Tone::good:
        return "\033[32m";
    case Cell::Tone::warning:
        return light ? "\033[1m" : "\033[33m";
    case Cell::Tone::bad:
        return "\033[31m";
    case Cell::Tone::dim:
        return "\033[2m";
    case Cell::Tone::title:
        return "\033[1m";
    case Cell::Tone::plain:
        break;
    }
    return {};
}

std::string painted(const std::string& text, std::string_view escape)
{
    return escape.empty() ? text : fmt::format("{}{}\033[0m", escape, text);
}

/// Sanitised text of at most `width` cells: its beginning, `…` and its end.
std::string without_middle(std::string_view text, std::size_t width)
{
    constexpr std::size_t k_least = 5;
    if (cells(text) <= width || width < k_least) {
        return clipped(text, width);
    }
    std::vector<std::string_view> glyphs;
    for (std::string_view rest = text; !rest.empty();) {
        glyphs.push_back(take_glyph(rest));
    }
    const std::size_t behind = (width - 1) / 2;
    const std::string begin = clipped(text, width - behind); // with its `…`
    std::string end;
    for (std::size_t used = 0; used + cells(glyphs.back()) <= behind; glyphs.pop_back()) {
        used += cells(glyphs.back());
        end.insert(0, glyphs.back());
    }
    return begin + end;
}

TableLine aligned(const Table& table, const Widths& widths, const std::vector<Cell>& row)
{
    TableLine line;
    std::size_t owed = 0; // blanks, written only if text follows
    for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string text = table.columns[i].cut == Column::Cut::middle
                                     ? without_middle(row[i].text, widths[i])
                                     : clipped(row[i].text, widths[i]);
        const std::size_t blanks = widths[i] - cells(text);
        const bool right = table.columns[i].align == Column::Align::right;
        owed += right ? blanks : 0;
        if (!text.empty()) {
            line.emplace_back(std::string(owed, ' '));
            line.emplace_back(text, row[i].tone);
            owed = 0;
        }
        owed += (right ? 0 : blanks) + k_gap;
    }
    return line;
}

Error no_such_column(const Table& table, std::string_view name)
{
    std::string known;
    for (const Column& column : table.columns) {
        known += (known.empty() ? "" : ", ") + column.name;
    }
    return fail(Error::Kind::usage,
                fmt::format("--columns: no column '{}'; there are: {}", name, known));
}

Result<std::size_t> index_of(const Table& table, std::string_view name)
{
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].name == name) {
            return i;
        }
    }
    return no_such_column(table, name);
}

/// `names`: empty for those that are always shown. Two columns may have the same name.
Result<std::vector<std::size_t>> indices_of(const Table& table, std::string_view names)
{
    std::vector<std::size_t> indices;
    if (!names.empty()) {
        for (const std::string_view name : split(names, ",")) {
            TRY_ASSIGN(const std::size_t index, index_of(table, name));
            indices.push_back(index);
        }
        return indices;
    }
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].show == Column::Show::always) {
            indices.push_back(i);
        }
    }
    return indices;
}

} // namespace

bool is_light(std::string_view colorfgbg)
{
    const auto number = colorfgbg.substr(colorfgbg.rfind(';') + 1);
    return colorfgbg.find(';') != colorfgbg.npos && (number == "7" || number == "15");
}

Result<Table> only(const Table& table, std::string_view names)
{
    Table chosen;
    chosen.rows.resize(table.rows.size());
    TRY_ASSIGN(const std::vector<std::size_t> indices, indices_of(table, names));
    for (const std::size_t index : indices) {
        chosen.columns.push_back(table.columns[index]);
        chosen.columns.back().drop = names.empty() ? table.columns[index].drop : 0;
        for (std::size_t row = 0; row < table.rows.size(); ++row) {
            chosen.rows[row].push_back(table.rows[row][index]);
        }
    }
    return chosen;
}

std::vector<TableLine> lines_of(const Table& table, const TableStyle& style)
{
    const Table clean = fit_columns(with_clean_texts(table), style);
    const Widths widths = fitted(clean, natural_widths(clean, style), style);
    std::vector<TableLine> lines;
    if (style.header) {
        std::vector<Cell> titles;
        for (const Column& column : clean.columns) {
            titles.emplace_back(column.title, Cell::Tone::title);
        }
        lines.push_back(aligned(clean, widths, titles));
    }
    for (const auto& row : clean.rows) {
        lines.push_back(aligned(clean, widths, row));
    }
    return lines;
}

std::string to_text(const Table& table, const TableStyle& style)
{
    std::string text;
    for (const TableLine& line : lines_of(table, style)) {
        for (const Cell& part : line) {
            text += painted(part.text, style.color ? escape_of(part.tone, style.light) : "");
        }
        text += '\n';
    }
    return text;
}

} // namespace gpuq::report
