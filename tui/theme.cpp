// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/theme.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace gpuq::tui {
namespace {

constexpr std::array k_levels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array k_series = {0x4fc3f7U, 0xffb74dU, 0x81c784U, 0xf06292U,
                                 0xba68c8U, 0xfff176U, 0x4db6acU, 0xe57373U};
constexpr std::array k_series_basic = {k_cyan, k_yellow, k_green, k_red, k_magenta, k_blue};
/// From idle to full.
constexpr std::array<std::uint32_t, 5> k_heat = {0x5b6c8aU, 0x3f9fb0U, 0x57b865U, 0xe0b040U,
                                                 0xe06040U};

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
    const double place = part * static_cast<double>(k_heat.size() - 1);
    const auto at = std::min(static_cast<std::size_t>(place), k_heat.size() - 2);
    return coloured(k_rgb | mixed(k_heat[at], k_heat[at + 1], place - static_cast<double>(at)));
}

Style series_style(std::size_t number, const Theme& theme)
{
    return coloured(theme.gradients ? k_rgb | k_series[number % k_series.size()]
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
    return k_levels[static_cast<std::size_t>(
        std::min(step, static_cast<int>(k_levels.size()) - 1))];
}

std::string bar(double share, int width, const Theme& theme)
{
    const int full = std::clamp(static_cast<int>(share * width + 0.5), 0, std::max(width, 0));
    std::string text;
    for (int i = 0; i < width; ++i) {
        text += i < full ? (theme.ascii ? "#" : "█") : (theme.ascii ? "." : "░");
    }
    return text;
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
    }
    std::string text;
    for (const auto& mean : means) {
        const double share = high > low ? (mean.value_or(0) - low) / (high - low) : 0.5;
        text += mean ? level(share, theme) : " ";
    }
    return text;
}

} // namespace gpuq::tui
