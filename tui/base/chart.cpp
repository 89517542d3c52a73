// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/chart.h"

#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpuq::tui {
namespace {

constexpr int k_dots_across = 2, k_dots_down = 4;
/// The dots of a braille cell by column and row, as Unicode numbers them (U+2800 and the bits).
constexpr unsigned k_dot[k_dots_across][k_dots_down] = {{0x01, 0x02, 0x04, 0x40},
                                                        {0x08, 0x10, 0x20, 0x80}};
constexpr int k_least_rows = 4, k_least_columns = 16;

std::string braille(unsigned dots)
{
    const unsigned point = 0x2800U + dots;
    return {static_cast<char>(0xe0U | point >> 12U),
            static_cast<char>(0x80U | (point >> 6U & 0x3fU)),
            static_cast<char>(0x80U | (point & 0x3fU))};
}

bool is_known(const std::optional<double>& value)
{
    return value && std::isfinite(*value);
}

/// A point of a line; `y` unset: a gap.
struct Point {
    double x = 0;
    std::optional<double> y;
};
using Points = std::vector<Point>;

/// The exponential mean of TensorBoard, without the bias of its first values.
Points smoothed(Points points, double weight)
{
    double sum = 0, scale = 0;
    for (Point& point : points) {
        if (point.y && weight > 0) {
            sum = weight * sum + (1 - weight) * *point.y;
            scale = weight * scale + (1 - weight);
            point.y = sum / scale;
        }
    }
    return points;
}

Points points_of(const Curve& curve, const ChartView& shown)
{
    const bool by_time = shown.by_time || !curve.of_training;
    std::optional<Time> first;
    Points points;
    for (const Dot& dot : curve.dots) {
        if (by_time && !dot.at) {
            if (!dot.value && !points.empty()) {
                points.push_back({points.back().x, {}});
            }
            continue;
        }
        first = first || !dot.at ? first : dot.at;
        const double x =
            by_time ? std::chrono::duration<double>(*dot.at - *first).count() : dot.step;
        points.push_back({x, is_known(dot.value) ? dot.value : std::nullopt});
    }
    return smoothed(std::move(points), shown.smoothing);
}

void widen(std::optional<Range>& range, double value)
{
    range = range ? Range{std::min(range->low, value), std::max(range->high, value)}
                  : Range{value, value};
}

/// The grid of dots of a chart.
class Grid {
public:
    Grid(const Rect& area, bool ascii)
        : m_area(area)
        , m_ascii(ascii)
        , m_cells(static_cast<std::size_t>(std::max(area.height, 0)) *
                  static_cast<std::size_t>(std::max(area.width, 0)))
    {
    }

    int across() const { return m_ascii ? m_area.width : m_area.width * k_dots_across; }
    int down() const { return m_ascii ? m_area.height : m_area.height * k_dots_down; }

    /// `y` counts from the top.
    void set(int x, int y, const Style& style)
    {
        if (x < 0 || y < 0 || x >= across() || y >= down()) {
            return;
        }
        const int row = m_ascii ? y : y / k_dots_down;
        const int column = m_ascii ? x : x / k_dots_across;
        Cell& cell =
            m_cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(m_area.width) +
                    static_cast<std::size_t>(column)];
        cell.dots |= m_ascii ? 1U : k_dot[x % k_dots_across][y % k_dots_down];
        cell.style = style;
    }

    void line(int x, int y, int to_x, int to_y, const Style& style)
    {
        const int steps = std::max({std::abs(to_x - x), std::abs(to_y - y), 1});
        for (int i = 0; i <= steps; ++i) {
            const auto between = [&](int from, int to) {
                return from + static_cast<int>(std::lround(double(to - from) * i / steps));
            };
            set(between(x, to_x), between(y, to_y), style);
        }
    }

    void draw(Canvas& canvas) const
    {
        for (int row = 0; row < m_area.height; ++row) {
            for (int column = 0; column < m_area.width; ++column) {
                const Cell& cell =
                    m_cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(m_area.width) +
                            static_cast<std::size_t>(column)];
                if (cell.dots != 0) {
                    canvas.put(m_area.top + row, m_area.left + column,
                               m_ascii ? "*" : braille(cell.dots), cell.style);
                }
            }
        }
    }

private:
    struct Cell {
        unsigned dots = 0;
        Style style;
    };
    Rect m_area;
    bool m_ascii;
    std::vector<Cell> m_cells;
};

/// Maps values to dots of a grid.
struct Scale {
    Range x, y;
    bool logarithmic = false;

    std::optional<double> share_y(double value) const
    {
        if (!logarithmic) {
            return is_flat(y) ? 0.5 : (value - y.low) / (y.high - y.low);
        }
        if (value <= 0) {
            return std::nullopt;
        }
        return is_flat(y)
                   ? 0.5
                   : (std::log(value) - std::log(y.low)) / (std::log(y.high) - std::log(y.low));
    }
    double share_x(double value) const
    {
        return is_flat(x) ? 0 : (value - x.low) / (x.high - x.low);
    }
};

void plot(Grid& grid, const Points& points, const Scale& scale, const Style& style)
{
    struct Place {
        int x, y;
    };
    std::optional<Place> before;
    for (const Point& point : points) {
        const auto share = point.y ? scale.share_y(*point.y) : std::nullopt;
        if (!share) {
            before.reset();
            continue;
        }
        const double across = scale.share_x(point.x);
        const Place place{
            static_cast<int>(std::lround(std::clamp(across, -1.0, 2.0) * (grid.across() - 1))),
            static_cast<int>(std::lround((1 - std::clamp(*share, -1.0, 2.0)) * (grid.down() - 1)))};
        const bool forward = before && before->x <= place.x; // not back to a checkpoint
        const Place from = forward ? *before : place;
        grid.line(from.x, from.y, place.x, place.y, style);
        before = place;
    }
}

/// `90 s`, `15 min`, `2.5 h`, `3 d`.
std::string span_text(double seconds)
{
    const double size = std::abs(seconds);
    return size < 120      ? fmt::format("{:.3g} s", seconds)
           : size < 7200   ? fmt::format("{:.3g} min", seconds / 60)
           : size < 172800 ? fmt::format("{:.3g} h", seconds / 3600)
                           : fmt::format("{:.3g} d", seconds / 86400);
}

/// Round times: multiples of a second, a minute, an hour or a day.
std::vector<double> time_ticks(const Range& range, int most)
{
    const double span = range.high - range.low;
    const double unit = span < 120 ? 1 : span < 7200 ? 60 : span < 172800 ? 3600 : 86400;
    std::vector<double> found = ticks({range.low / unit, range.high / unit}, most);
    for (double& tick : found) {
        tick *= unit;
    }
    return found;
}

/// The value of a line at a place: the last one not after it.
std::optional<double> value_at(const Points& points, double x)
{
    std::optional<double> value;
    for (const Point& point : points) {
        if (point.x <= x && point.y) {
            value = point.y;
        }
    }
    return value;
}

std::optional<double> newest(const Points& points)
{
    return points.empty() ? std::nullopt : points.back().y;
}

/// One chart while it is drawn.
class Chart {
public:
    Chart(Canvas& canvas, const Rect& area, const std::vector<Plotted>& curves,
          const ChartView& shown, const Theme& theme)
        : m_canvas(canvas)
        , m_area(area)
        , m_curves(curves)
        , m_shown(shown)
        , m_theme(theme)
        , m_by_time(shown.by_time ||
                    std::none_of(curves.begin(), curves.end(),
                                 [](const Plotted& plotted) { return plotted.curve->of_training; }))
    {
        for (const Plotted& plotted : curves) {
            m_points.push_back(points_of(*plotted.curve, shown));
        }
    }

    void draw()
    {
        const auto scale = scale_of_visible();
        if (!scale) {
            m_canvas.put(
                m_area.top, m_area.left,
                Line{{m_by_time && m_shown.by_time ? "no values with times" : "no values yet",
                      dim()}},
                m_area.width);
            return;
        }
        draw_legend(*scale);
        const Rect below{m_area.top + 1, m_area.left, m_area.height - 1, m_area.width};
        const std::vector<AxisMark> down = y_marks(*scale);
        const Rect inner = draw_axes(m_canvas, below, down,
                                     x_marks(*scale, within_axes(below, down).width), m_theme);
        Grid grid(inner, m_theme.ascii);
        for (std::size_t i = 0; i < m_points.size(); ++i) {
            plot(grid, m_points[i], *scale, m_curves[i].style);
        }
        grid.draw(m_canvas);
        if (m_shown.cursor) {
            draw_cursor(inner);
        }
    }

private:
    std::optional<Scale> scale_of_visible() const
    {
        std::optional<Range> x, y;
        for (const Points& points : m_points) {
            for (const Point& point : points) {
                widen(x, point.x);
            }
        }
        if (!x) {
            return std::nullopt;
        }
        const double span = x->high - x->low;
        const Range visible{x->low + m_shown.from * span, x->low + m_shown.to * span};
        for (const Points& points : m_points) {
            for (const Point& point : points) {
                if (point.y && point.x >= visible.low && point.x <= visible.high &&
                    (!m_shown.logarithmic || *point.y > 0)) {
                    widen(y, *point.y);
                }
            }
        }
        if (!y) {
            return std::nullopt;
        }
        const bool is_share = std::all_of(m_curves.begin(), m_curves.end(), [](const Plotted& one) {
            return one.curve->unit == "%";
        });
        return Scale{visible, is_share && !m_shown.logarithmic ? Range{0, 100} : *y,
                     m_shown.logarithmic};
    }

    void draw_legend(const Scale& scale)
    {
        Line legend;
        const double x = scale.x.low + m_shown.cursor.value_or(1) * (scale.x.high - scale.x.low);
        if (m_shown.cursor) {
            legend.push_back(
                {(m_by_time ? span_text(x) : "step " + short_number(std::round(x))) + "  ",
                 bold()});
        }
        for (std::size_t i = 0; i < m_curves.size(); ++i) {
            const auto value = m_shown.cursor ? value_at(m_points[i], x) : newest(m_points[i]);
            const std::string unit = m_curves[i].curve->unit;
            legend.push_back({m_theme.ascii ? "* " : "━ ", m_curves[i].style});
            legend.push_back({fmt::format("{} {}{}  ", sanitised(m_curves[i].name),
                                          value ? short_number(*value) : "unknown",
                                          value && !unit.empty() ? " " + sanitised(unit) : ""),
                              {}});
        }
        m_canvas.put(m_area.top, m_area.left, legend, m_area.width);
    }

    std::vector<AxisMark> y_marks(const Scale& scale) const
    {
        const int most = most_ticks_down(m_area.height - 3);
        const std::vector<double> found =
            scale.logarithmic ? log_ticks(scale.y, most) : ticks(scale.y, most);
        const std::vector<std::string> texts = short_numbers(found);
        std::vector<AxisMark> marks;
        for (std::size_t i = 0; i < found.size(); ++i) {
            marks.push_back({scale.share_y(found[i]).value_or(-1), texts[i]});
        }
        return marks;
    }

    std::vector<AxisMark> x_marks(const Scale& scale, int width) const
    {
        const int most = most_ticks_across(width);
        const std::vector<double> found =
            m_by_time ? time_ticks(scale.x, most) : ticks(scale.x, most);
        const std::vector<std::string> texts = short_numbers(found);
        std::vector<AxisMark> marks;
        for (std::size_t i = 0; i < found.size(); ++i) {
            marks.push_back({scale.share_x(found[i]), m_by_time ? span_text(found[i]) : texts[i]});
        }
        return marks;
    }

    void draw_cursor(const Rect& inner)
    {
        const int column =
            inner.left + static_cast<int>(std::lround(*m_shown.cursor * (inner.width - 1)));
        for (int row = inner.top; row <= inner.bottom(); ++row) {
            if (m_canvas.at(row, column).glyph == " ") {
                m_canvas.put(row, column, m_theme.ascii ? ":" : "┊", dim());
            } else {
                m_canvas.tint(row, column, 1, marked());
            }
        }
    }

    Canvas& m_canvas;
    Rect m_area;
    const std::vector<Plotted>& m_curves;
    const ChartView& m_shown;
    const Theme& m_theme;
    bool m_by_time;
    std::vector<Points> m_points;
};

} // namespace

std::string settings_text(const ChartView& shown)
{
    std::vector<std::string> parts;
    if (shown.logarithmic) {
        parts.emplace_back("log scale");
    }
    if (shown.smoothing > 0) {
        parts.push_back(fmt::format("smoothed by {}", shown.smoothing));
    }
    if (shown.by_time) {
        parts.emplace_back("over time");
    }
    if (shown.to - shown.from < 1) {
        parts.push_back(fmt::format("{:.0f}-{:.0f} % of it", 100 * shown.from, 100 * shown.to));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::optional<Range> range_of(const Curve& curve)
{
    std::optional<Range> range;
    for (const Dot& dot : curve.dots) {
        if (is_known(dot.value)) {
            widen(range, *dot.value);
        }
    }
    return range;
}

std::optional<double> last_of(const Curve& curve)
{
    return curve.dots.empty() ? std::nullopt : curve.dots.back().value;
}

void draw_chart(Canvas& canvas, const Rect& area, const std::vector<Plotted>& curves,
                const ChartView& shown, const Theme& theme)
{
    if (area.height >= k_least_rows && area.width >= k_least_columns) {
        Chart(canvas, area, curves, shown, theme).draw();
    }
}

void draw_curve(Canvas& canvas, const Rect& area, const Curve& curve, const Style& style,
                const Theme& theme)
{
    const auto range = range_of(curve);
    const std::string unit = curve.unit.empty() ? "" : " " + curve.unit;
    const auto newest_value = last_of(curve);
    std::string title = sanitised(curve.title) + " ";
    title += newest_value ? short_number(*newest_value) + sanitised(unit) : "unknown";
    const bool is_log = range && curve.of_training && is_known(newest_value) &&
                        falls_far(range->low, range->high, *newest_value);
    if (range) {
        const auto ends = short_numbers({range->low, range->high});
        title += fmt::format("  ({} to {}{})", ends[0], ends[1], is_log ? ", log" : "");
    }
    canvas.put(area.top, area.left,
               clipped(title, static_cast<std::size_t>(std::max(area.width, 0))), bold());
    const Rect inner{area.top + 1, area.left, area.height - 1, area.width};
    if (!range || inner.height < 1 || inner.width < 1) {
        return;
    }
    const auto scaled = [is_log](double value) { return is_log ? std::log(value) : value; };
    Points points;
    for (std::size_t i = 0; i < curve.dots.size(); ++i) { // evenly: no axis shows the distances
        const auto& value = curve.dots[i].value;
        points.push_back({static_cast<double>(i),
                          is_known(value) ? std::optional(scaled(*value)) : std::nullopt});
    }
    const double last = static_cast<double>(std::max<std::size_t>(curve.dots.size(), 2) - 1);
    Grid grid(inner, theme.ascii);
    const Range scale{scaled(range->low), scaled(range->high)};
    plot(grid, points, {{0, last}, curve.unit == "%" ? Range{0, 100} : scale}, style);
    grid.draw(canvas);
}

} // namespace gpuq::tui
