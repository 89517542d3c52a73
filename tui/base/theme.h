// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/base/canvas.h"
#include "tui/base/picture.h"

#include <cstdint>
#include <string>

/// Colours and characters by their meaning.
namespace gpuq::tui {

/// The colours that the user wants: none, or those of the setting `theme`.
enum class Colours : std::uint8_t {
    none,
    automatic, ///< `basic` on a light background, else as many as the terminal has
    basic,     ///< the 16 of the terminal's own theme
    palette,   ///< also gradients, of the usual palette of 256 colours
    direct,    ///< also gradients, of 24-bit colours if a description of the terminal has them
};

/// The terminal's abilities.
struct Theme {
    bool ascii = false;     ///< only ASCII: the locale does not use UTF-8
    bool gradients = false; ///< colours besides the 16 of the terminal's own theme
    bool light = false;     ///< the background is light
};

constexpr std::uint32_t k_red = 1, k_green = 2, k_yellow = 3, k_blue = 4, k_magenta = 5, k_cyan = 6;

Style bold();
Style dim();
Style coloured(std::uint32_t colour);
Style marked();

/// For a share of something in use, 0 to 1.
Style heat(double share, const Theme& theme);
/// Colours each cell of the bars, levels and sparklines in an area by its place or its height,
/// unless it is reversed. Nothing without gradients.
void shade(Canvas& canvas, const Rect& area, const Theme& theme);
/// For the n-th of several curves in one chart.
Style series_style(std::size_t number, const Theme& theme);
Style style_of(Gpu::State state);
Style style_of(RunMark mark);

/// A letter for a state, in every locale.
std::string_view letter(Gpu::State state);
std::string_view glyph(RunMark mark, const Theme& theme);

/// One cell, filled from below by a share; unknown is `?`.
std::string level(std::optional<double> share, const Theme& theme);
/// A horizontal bar of `width` cells.
std::string bar(double share, int width, const Theme& theme);
/// Whether values that end at `last` are shown on a logarithmic scale: all are positive, and on a
/// linear one the last, in the lowest tenth of the range, would look like the lowest.
bool falls_far(double low, double high, double last);
/// The values as a row of levels between their lowest and their highest, logarithmic if they fall
/// far, or from 0 to `most` if that is given; as many as `width`, the newest last. Unknown values
/// are blanks.
std::string sparkline(const std::vector<Dot>& dots, std::size_t width, std::optional<double> most,
                      const Theme& theme);

} // namespace gpuq::tui
