// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/table_lines.h"

#include "tui/base/theme.h"

#include <algorithm>

namespace gpuq::tui {
namespace {

using report::Cell;

Style style_of(Cell::Tone tone)
{
    using Tone = Cell::Tone;
    switch (tone) {
    case Tone::good:
        return coloured(k_green);
    case Tone::warning:
        return coloured(k_yellow);
    case Tone::bad:
        return coloured(k_red);
    case Tone::dim:
        return dim();
    case Tone::title:
        return bold();
    case Tone::plain:
        break;
    }
    return {};
}

} // namespace

std::vector<Line> table_lines(const report::Table& table, int width)
{
    report::TableStyle style;
    style.width = static_cast<std::size_t>(std::max(width, 1));
    const auto shown = report::only(table, "");
    std::vector<Line> lines;
    for (const report::TableLine& parts : report::lines_of(shown ? *shown : table, style)) {
        Line& line = lines.emplace_back();
        for (const Cell& part : parts) {
            line.push_back({part.text, style_of(part.tone)});
        }
    }
    return lines;
}

std::vector<Line> table_lines(const std::vector<report::Table>& tables, int width)
{
    std::vector<Line> lines;
    for (const report::Table& table : tables) {
        for (Line& line : table_lines(table, width)) {
            lines.push_back(std::move(line));
        }
        lines.emplace_back();
    }
    return lines;
}

} // namespace gpuq::tui
