// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/theme.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace gpuq::tui {
namespace {

constexpr std::array<std::string_view, 8> k_levels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view k_full = "█", k_empty = "░";
constexpr std::array k_series = {0x4fc3f7U, 0xffb74dU, 0x81c784U, 0xf06292U,
                                 0xba68c8U, 0xfff176U, 0x4db6acU, 0xe57373U};
constexpr std::array k_series_light = {0x01579bU, 0xb35900U, 0x2e7d32U, 0xad1457U,
                                       0x6a1b9aU, 0x827717U, 0x00695cU, 0xb71c1cU};
constexpr std::array k_series_basic = {k_cyan, k_yellow, k_green, k_red, k_magenta, k_blue};
/// From idle to full.
constexpr std::array<std::uint32_t, 5> k_heat = {0x5b6c8aU, 0x3f9fb0U, 0x57b865U, 0xe0b040U,
                                                 0xe06040U};
constexpr std::array<std::uint32_t, 5> k_heat_light = {0x44526bU, 0x1f6f80U, 0x2b7d3aU, 0x8a6300U,
                                                       0xb03a20U};

std::uint32_t channel(std::uint32_t colour, unsigned shift)
{
    return colour >> shift & 0xffU;
}

std::uint32_t mixed(std::uint32_t one, std::uint32_t other, double share)
{
    std::uint32_t colour = 0;
    for (const unsigned shift : {16U, 8U, 0U}) {
        const double value = channel(one, shift) * (1 - share) + channel(other, shift) * share;
        colour |= static_cast<std::uint32_t>(std::lround(value)) << shift;
    }
    return colour;
}

std::string ascii_level(double share)
{
    return std::to_string(std::clamp(static_cast<int>(share * 10), 0, 9));
}

/// The height of a level, 0 to 1; nothing for another character.
std::optional<double> level_of(std::string_view glyph)
{
    const auto* const found = std::find(k_levels.begin(), k_levels.end(), glyph);
    return found == k_levels.end() ? std::nullopt
                                   : std::optional(static_cast<double>(found - k_levels.begin()) /
                                                   static_cast<double>(k_levels.size() - 1));
}

/// The number of cells of the bar that begins here: full ones, then empty ones. 0 without one: full
/// cells alone may be a sparkline.
int bar_width(const Canvas& canvas, int row, int begin, int end)
{
    int column = begin;
    const auto skip = [&](std::string_view glyph) {
        const int from = column;
        while (column < end && canvas.at(row, column).glyph == glyph) {
            ++column;
        }
        return column > from;
    };
    return skip(k_full) && skip(k_empty) ? column - begin : 0;
}

void shade_cell(Canvas& canvas, int row, int column, std::optional<double> share,
                const Theme& theme)
{
    const Canvas::Cell& cell = canvas.at(row, column);
    if (!share || cell.style.reverse || cell.glyph == k_empty) {
        return;
    }
    Style style = cell.style;
    style.fg = heat(*share, theme).fg;
    canvas.tint(row, column, 1, style);
}

} // namespace

Style bold()
{
    Style style;
    style.bold = true;
    return style;
}

Style dim()
{
    Style style;
    style.dim = true;
    return style;
}

Style coloured(std::uint32_t colour)
{
    Style style;
    style.fg = colour;
    return style;
}

Style marked()
{
    Style style;
    style.reverse = true;
    return style;
}

Style heat(double share, const Theme& theme)
{
    const double part = std::clamp(share, 0.0, 1.0);
    if (!theme.gradients) {
        return coloured(part < 0.1 ? k_blue : part < 0.9 ? k_green : k_yellow);
    }
    const auto& colours = theme.light ? k_heat_light : k_heat;
    const double place = part * static_cast<double>(colours.size() - 1);
    const auto at = std::min(static_cast<std::size_t>(place), colours.size() - 2);
    return coloured(k_rgb | mixed(colours[at], colours[at + 1], place - static_cast<double>(at)));
}

void shade(Canvas& canvas, const Rect& area, const Theme& theme)
{
    for (int row = area.top; theme.gradients && row <= area.bottom(); ++row) {
        for (int column = area.left; column < area.left + area.width;) {
            const int width = bar_width(canvas, row, column, area.left + area.width);
            for (int i = 0; i < std::max(width, 1); ++i) {
                const auto share = width > 0 ? std::optional((i + 0.5) / width)
                                             : level_of(canvas.at(row, column + i).glyph);
                shade_cell(canvas, row, column + i, share, theme);
            }
            column += std::max(width, 1);
        }
    }
}

Style series_style(std::size_t number, const Theme& theme)
{
    const auto& series = theme.light ? k_series_light : k_series;
    return coloured(theme.gradients ? k_rgb | series[number % series.size()]
                                    : k_series_basic[number % k_series_basic.size()]);
}

Style style_of(Gpu::State state)
{
    switch (state) {
    case Gpu::State::mine: {
        Style style = coloured(k_cyan);
        style.bold = true;
        return style;
    }
    case Gpu::State::free:
        return coloured(k_green);
    case Gpu::State::reserved:
        return coloured(k_yellow);
    case Gpu::State::down:
        return coloured(k_red);
    case Gpu::State::others:
        return {};
    case Gpu::State::unknown:
        break;
    }
    return dim();
}

Style style_of(RunMark mark)
{
    switch (mark) {
    case RunMark::waiting:
    case RunMark::attention:
        return coloured(k_yellow);
    case RunMark::running:
    case RunMark::done:
        return coloured(k_green);
    case RunMark::failed:
        return coloured(k_red);
    case RunMark::ended:
        break;
    }
    return dim();
}

std::string_view letter(Gpu::State state)
{
    switch (state) {
    case Gpu::State::mine:
        return "M";
    case Gpu::State::others:
        return "o";
    case Gpu::State::free:
        return "f";
    case Gpu::State::reserved:
        return "r";
    case Gpu::State::down:
        return "d";
    case Gpu::State::unknown:
        break;
    }
    return "?";
}

std::string_view glyph(RunMark mark, const Theme& theme)
{
    switch (mark) {
    case RunMark::waiting:
        return theme.ascii ? "w" : "◌";
    case RunMark::running:
        return theme.ascii ? ">" : "▶";
    case RunMark::attention:
        return "!";
    case RunMark::done:
        return theme.ascii ? "+" : "✓";
    case RunMark::failed:
        return theme.ascii ? "x" : "✗";
    case RunMark::ended:
        break;
    }
    return theme.ascii ? "-" : "■";
}

std::string level(std::optional<double> share, const Theme& theme)
{
    if (!share || !std::isfinite(*share)) {
        return "?";
    }
    if (theme.ascii) {
        return ascii_level(*share);
    }
    const auto step = static_cast<int>(std::clamp(*share, 0.0, 1.0) * k_levels.size());
    return std::string(
        k_levels[static_cast<std::size_t>(std::min(step, static_cast<int>(k_levels.size()) - 1))]);
}

std::string bar(double share, int width, const Theme& theme)
{
    const int full = std::clamp(static_cast<int>(share * width + 0.5), 0, std::max(width, 0));
    std::string text;
    for (int i = 0; i < width; ++i) {
        text += i < full ? (theme.ascii ? "#" : k_full) : (theme.ascii ? "." : k_empty);
    }
    return text;
}

bool falls_far(double low, double high, double last)
{
    constexpr double k_far = 10;
    return low > 0 && high / low >= k_far && last - low <= (high - low) / k_far;
}

std::string sparkline(const std::vector<Dot>& dots, std::size_t width, std::optional<double> most,
                      const Theme& theme)
{
    if (dots.empty() || width == 0) {
        return "";
    }
    // As in a chart: the whole curve, each cell the mean of its part.
    const std::size_t columns = std::min(width, dots.size());
    std::vector<std::optional<double>> means(columns);
    for (std::size_t i = 0; i < columns; ++i) {
        double sum = 0;
        int count = 0;
        for (std::size_t at = i * dots.size() / columns; at < (i + 1) * dots.size() / columns;
             ++at) {
            if (dots[at].value && std::isfinite(*dots[at].value)) {
                sum += *dots[at].value;
                ++count;
            }
        }
        means[i] = count > 0 ? std::optional(sum / count) : std::nullopt;
    }
    double low = 0, high = most.value_or(0);
    if (!most) {
        bool any = false;
        for (const auto& mean : means) {
            if (mean) {
                low = any ? std::min(low, *mean) : *mean;
                high = any ? std::max(high, *mean) : *mean;
                any = true;
            }
        }
        if (means.back() && falls_far(low, high, *means.back())) {
            for (auto& mean : means) {
                mean = mean ? std::optional(std::log(*mean)) : std::nullopt;
            }
            low = std::log(low);
            high = std::log(high);
        }
    }
    std::string text;
    for (const auto& mean : means) {
        const double share = high > low ? (mean.value_or(0) - low) / (high - low) : 0.5;
        text += mean ? level(share, theme) : " ";
    }
    return text;
}

} // namespace gpuq::tui
