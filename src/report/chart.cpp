// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/chart.h"

#include "report/html.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuq::report {
namespace {

/// A size of the drawing, in units that are pixels on a screen that it just fits.
struct Frame {
    std::string_view name;
    double width;
    double height;
};
constexpr std::array k_tall = {Frame{"wide", 860, 320}, Frame{"narrow", 400, 290}};
constexpr std::array k_low = {Frame{"wide", 860, 210}, Frame{"narrow", 400, 210}};

constexpr double k_letter = 7; ///< approximate width
constexpr double k_top = 28;   ///< leaves space for the title of y above the chart
constexpr double k_bottom = 44;

double width_of(const std::string& label)
{
    return k_letter * static_cast<double>(cells(sanitised(label)));
}

/// One drawing of a chart.
class Drawing {
public:
    Drawing(const Chart& chart, const Frame& frame)
        : m_chart(chart)
        , m_frame(frame)
        , m_right(frame.width - 18)
        , m_floor(frame.height - k_bottom)
    {
        if (chart.size == Chart::Size::low) { // low charts are stacked: their left edges align
            constexpr double k_common = 48;
            m_left = k_common;
        }
        for (const Tick& tick : chart.y.ticks) {
            m_left = std::max(m_left, width_of(tick.label) + 12);
        }
    }

    std::string svg() const
    {
        const std::string id = fmt::format("{}-{}", m_chart.id, m_frame.name);
        std::string text =
            fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" "
                        "aria-labelledby=\"{}-title {}-desc\">\n<title id=\"{}-title\">{}</title>\n"
                        "<desc id=\"{}-desc\">{}</desc>\n",
                        m_frame.name, m_frame.width, m_frame.height, id, id, id,
                        html_text(m_chart.title), id, html_text(m_chart.description));
        text += y_axis() + x_axis() + blocks();
        for (std::size_t i = 0; i < m_chart.curves.size(); ++i) {
            text += curve(i);
        }
        return text + boundaries() + marks() + "</svg>\n";
    }

private:
    static double part(const Axis& axis, double value)
    {
        const auto scale = [&](double number) {
            return axis.logarithmic ? std::log(std::max(number, axis.low)) : number;
        };
        const double width = scale(axis.high) - scale(axis.low);
        const double share = width > 0 ? (scale(value) - scale(axis.low)) / width : 0;
        return std::clamp(share, 0.0, 1.0);
    }
    double x(double value) const { return m_left + part(m_chart.x, value) * (m_right - m_left); }
    double y(double value) const { return m_floor - part(m_chart.y, value) * (m_floor - k_top); }

    static std::string line(std::string_view kind, Point from, Point to)
    {
        return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
                           "y2=\"{:.1f}\"/>\n",
                           kind, from.x, from.y, to.x, to.y);
    }
    static std::string text_element(std::string_view anchor, Point at, const std::string& text,
                                    std::string_view kind = "label")
    {
        return fmt::format(
            "<text class=\"{}\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kind,
            anchor, at.x, at.y, html_text(text));
    }

    std::string y_axis() const
    {
        std::string text = text_element("start", {2, 14}, m_chart.y.title);
        for (const Tick& tick : m_chart.y.ticks) {
            const double height = y(tick.at);
            text += line("grid", {m_left, height}, {m_right, height});
            text += text_element("end", {m_left - 8, height + 4}, tick.label);
        }
        return text;
    }

    std::string x_axis() const
    {
        std::string text;
        double taken = 0; ///< by labels so far
        for (const Tick& tick : m_chart.x.ticks) {
            const double width = width_of(tick.label);
            const double middle =
                std::clamp(x(tick.at), width / 2, std::max(width / 2, m_frame.width - width / 2));
            text += line("grid", {x(tick.at), k_top}, {x(tick.at), m_floor});
            if (middle - width / 2 < taken) {
                continue;
            }
            taken = middle + width / 2 + k_letter;
            text += text_element("middle", {middle, m_floor + 18}, tick.label);
        }
        text += line("axis", {m_left, m_floor}, {m_right, m_floor});
        return text + text_element("end", {m_right, m_frame.height - 6}, m_chart.x.title);
    }

    std::string curve(std::size_t number) const
    {
        const bool several = m_chart.lines == Chart::Lines::several;
        std::string text = fmt::format("<path class=\"{} {}{}\" d=\"", several ? "line" : "curve",
                                       several ? "line" : "curve", number);
        const auto& points = m_chart.curves[number];
        const auto known = [&](std::size_t i) {
            return i < points.size() && std::isfinite(points[i].y);
        };
        bool drawing = false;
        for (std::size_t i = 0; i < points.size(); ++i) {
            if (!known(i)) {
                drawing = false;
                continue;
            }
            const double at = x(points[i].x), height = y(points[i].y);
            if (!drawing && !known(i + 1)) { // a single point between gaps: a dash, to be visible
                text += fmt::format("M{:.1f} {:.1f}H{:.1f}", at - 1, height, at + 1);
                continue;
            }
            text += fmt::format("{}{:.1f} {:.1f}", drawing ? 'L' : 'M', at, height);
            drawing = true;
        }
        return text + "\"/>\n";
    }

    /// Each part of all blocks is one path; adjacent blocks of the same height are one rectangle.
    std::string blocks() const
    {
        std::string text;
        for (std::size_t part = 0; part < k_most_parts; ++part) {
            std::string path;
            double from = 0, to = -1, low = 0, high = 0;
            const auto flush = [&] {
                if (to > from && low - high >= 0.05) {
                    path += fmt::format("M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}Z", from, low, to, high,
                                        from);
                }
            };
            for (const Block& block : m_chart.blocks) {
                double below = 0;
                for (std::size_t i = 0; i < part && i < block.parts.size(); ++i) {
                    below += block.parts[i];
                }
                const double own = part < block.parts.size() ? block.parts[part] : 0;
                const double left = x(block.from), right = x(block.to);
                const double bottom = y(below), top = y(below + own);
                const bool same = std::abs(left - to) < 0.05 && std::abs(bottom - low) < 0.05 &&
                                  std::abs(top - high) < 0.05;
                if (!same) {
                    flush();
                    from = left;
                    low = bottom;
                    high = top;
                }
                to = right;
            }
            flush();
            if (!path.empty()) {
                text += fmt::format("<path class=\"part{}\" d=\"{}\"/>\n", part, path);
            }
        }
        return text;
    }

    std::string boundaries() const
    {
        std::string text;
        double taken = 2 + width_of(m_chart.y.title) + k_letter; ///< by text so far
        for (const Tick& begin : m_chart.boundaries) {
            const double at = x(begin.at);
            const double width = width_of(begin.label);
            text += line("mark", {at, k_top - 4}, {at, m_floor});
            // Slightly beside its line rather than over other text.
            const double left = std::max(std::min(at - 3, m_frame.width - width), taken);
            if (left - at < 30 && left + width <= m_frame.width) {
                text += text_element("start", {left, k_top - 9}, begin.label, "mark-text");
                taken = left + width + k_letter;
            }
        }
        for (const double notch : m_chart.notches) {
            text += line("notch", {x(notch), m_floor}, {x(notch), m_floor + 5});
        }
        return text;
    }

    std::string marks() const
    {
        std::string text;
        if (m_chart.upright) {
            const double at = x(m_chart.upright->at);
            const bool fits = at + 6 + width_of(m_chart.upright->label) < m_right;
            text += line("mark", {at, k_top}, {at, m_floor});
            text += text_element(fits ? "start" : "end", {at + (fits ? 6 : -6), m_floor - 8},
                                 m_chart.upright->label, "mark-text");
        }
        if (m_chart.level) {
            const double at = y(m_chart.level->at);
            text += line("mark", {m_left, at}, {m_right, at});
            // Names of boundaries are above the chart.
            const double strings_at = m_chart.boundaries.empty() ? at - 5 : at + 15;
            text +=
                text_element("end", {m_right - 4, strings_at}, m_chart.level->label, "mark-text");
        }
        return text;
    }

    const Chart& m_chart;
    const Frame& m_frame;
    double m_left = 24;
    double m_right;
    double m_floor;
};

/// The smallest of 1, 2, 5, 10 ... that is not below `about`.
double round_step(double about)
{
    const double ten = std::pow(10, std::floor(std::log10(about)));
    double step = 10 * ten;
    for (const double factor : {5.0, 2.0, 1.0}) {
        step = factor * ten >= about * 0.999 ? factor * ten : step;
    }
    return step;
}

/// `90 s`, `1 h 30`, `2 d 12 h`.
std::string time_label(std::int64_t seconds, std::int64_t step)
{
    constexpr std::int64_t k_minute = 60, k_hour = 3600, k_day = 86400;
    if (seconds == 0) {
        return "0";
    }
    if (step < k_minute) {
        return seconds < k_minute ? fmt::format("{} s", seconds)
                                  : fmt::format("{}:{:02}", seconds / k_minute, seconds % k_minute);
    }
    if (step < k_hour) {
        return seconds < k_hour
                   ? fmt::format("{} min", seconds / k_minute)
                   : fmt::format("{}:{:02} h", seconds / k_hour, seconds % k_hour / k_minute);
    }
    if (step < k_day && seconds < 2 * k_day) {
        return fmt::format("{} h", seconds / k_hour);
    }
    const std::int64_t rest = seconds % k_day / k_hour;
    return rest == 0 ? fmt::format("{} d", seconds / k_day)
                     : fmt::format("{} d {} h", seconds / k_day, rest);
}

std::string html_keys(const std::vector<std::string>& names, const auto& key)
{
    std::string text = "<ul class=\"legend\">\n";
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].empty()) {
            continue;
        }
        text += fmt::format("<li><svg viewBox=\"0 0 36 10\" aria-hidden=\"true\">{}</svg>"
                            "<span>{}</span></li>\n",
                            key(i), html_text(names[i]));
    }
    return text + "</ul>\n";
}

} // namespace

Axis axis_between(std::string title, double low, double high)
{
    const double width = high - low;
    if (!std::isfinite(width) || width <= std::abs(high) * 1e-9) { // a flat line in the middle
        const double around = std::isfinite(high) ? std::max(std::abs(high) / 2, 1e-9) : 1;
        const double middle = std::isfinite(high) ? high : 0;
        return axis_between(std::move(title), middle - around, middle + around);
    }
    const double step = round_step(width / 5);
    Axis axis;
    axis.title = std::move(title);
    axis.low = step * std::floor(low / step + 1e-6);
    axis.high = step * std::ceil(high / step - 1e-6);
    const auto steps = static_cast<int>(std::lround((axis.high - axis.low) / step));
    for (int i = 0; i <= steps; ++i) {
        const double at = axis.low + step * i;
        axis.ticks.push_back({at, fmt::format("{:g}", std::abs(at) < step / 1000 ? 0 : at)});
    }
    return axis;
}

Axis axis_of_time(std::string title, double length)
{
    constexpr std::array<std::int64_t, 23> k_steps = {
        1,         2,     5,         10,        15,         30,         60,        120,
        300,       600,   900,       1800,      3600,       2 * 3600,   3 * 3600,  6 * 3600,
        12 * 3600, 86400, 2 * 86400, 7 * 86400, 14 * 86400, 28 * 86400, 56 * 86400};
    Axis axis;
    axis.title = std::move(title);
    axis.high = std::max(length, 1.0);
    std::int64_t step = k_steps.back();
    for (auto at = k_steps.rbegin(); at != k_steps.rend(); ++at) {
        step = static_cast<double>(*at) >= axis.high / 9 ? *at : step;
    }
    for (std::int64_t at = 0; static_cast<double>(at) <= axis.high && axis.ticks.size() < 100;
         at += step) {
        axis.ticks.push_back({static_cast<double>(at), time_label(at, step)});
    }
    return axis;
}

Axis axis_from_zero(std::string title, double high)
{
    const double step = round_step(std::max(high, 1e-9) / 5);
    Axis axis;
    axis.title = std::move(title);
    const auto steps = static_cast<int>(std::ceil(std::max(high, 1e-9) / step - 1e-6));
    axis.high = step * steps;
    for (int i = 0; i <= steps; ++i) {
        axis.ticks.push_back({step * i, fmt::format("{:g}", step * i)});
    }
    return axis;
}

std::string html_chart(const Chart& chart)
{
    std::string text;
    for (const Frame& frame : chart.size == Chart::Size::low ? k_low : k_tall) {
        text += Drawing(chart, frame).svg();
    }
    return text;
}

std::string html_legend(const std::vector<std::string>& names, Chart::Lines lines)
{
    const std::string kind = lines == Chart::Lines::several ? "line" : "curve";
    return html_keys(names, [&](std::size_t i) {
        return fmt::format("<path class=\"{} {}{}\" d=\"M0 5H36\"/>", kind, kind, i);
    });
}

std::string html_parts_legend(const std::vector<std::string>& names)
{
    return html_keys(names, [](std::size_t i) {
        return i < k_most_parts ? fmt::format("<path class=\"part{}\" d=\"M0 0H36V10H0Z\"/>", i)
                                : std::string("<path class=\"blank\" d=\"M.5 .5H35.5V9.5H.5Z\"/>");
    });
}

} // namespace gpuq::report
